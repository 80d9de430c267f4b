/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records the packets in flight when a packet was sent. A patched kernel stores that with each packet; here, a ring
 * stores it for selected times.
 *
 * The kernel queries the size of a burst before it sends (min_tso_segs). The packets in flight at that time, plus
 * those sent until the next query, form an entry. When a packet is acknowledged, the kernel knows its time of
 * transmission; the last entry before that time is used. Entries are at least 1/32 of a round trip apart, so that the
 * ring covers two round trips.
 *
 * The latest call is stored in the socket, separate from the ring: most calls access neither the ring nor its map.
 */
#ifndef THALWEG_BBR3_INFLIGHT_RING_H
#define THALWEG_BBR3_INFLIGHT_RING_H

#include "fixed_point.h"

#define BBR3_RING_ENTRIES 64
#define BBR3_RING_SPACING_SHIFT 5
#define BBR3_RING_TIME_SHIFT 10

struct bbr3_moment {
	uint32_t at;       /* in units of 1024 ns: a shift costs less than a division */
	uint32_t inflight; /* packets, including those sent at that time */
	uint32_t lost;     /* packets lost since the start */
	uint32_t is_app_limited;
};

struct bbr3_ring {
	uint32_t next;   /* number of entries that were written */
	uint32_t latest; /* number of the entry of the last acknowledged packet */
	struct bbr3_moment entries[BBR3_RING_ENTRIES];
};

/* The latest call; all zero at the start. */
struct bbr3_call {
	uint64_t last; /* time of the last entry, with bit 32 set; 0 before the first entry */
	uint32_t is_pending;
	uint32_t sent; /* packets sent since the start, before the call */
	uint32_t at;
	uint32_t inflight; /* packets in flight, without those sent since the call */
	uint32_t lost;
	uint32_t delivered; /* packets delivered since the start */
	uint32_t is_app_limited;
};

/*
 * Converts the time of a packet from microseconds for bbr3_ring_find(). Rounds up, so that the packet's own entry is
 * not later.
 */
BBR3_INLINE uint32_t bbr3_ring_time(uint64_t us)
{
	return (us * 1000 + 999) >> BBR3_RING_TIME_SHIFT;
}

BBR3_INLINE struct bbr3_moment *bbr3_ring_at(struct bbr3_ring *ring, uint32_t number)
{
	return &ring->entries[number % BBR3_RING_ENTRIES];
}

/* Returns whether the last entry is too recent for a new one at `at`. */
BBR3_INLINE uint32_t bbr3_ring_is_early(const struct bbr3_call *call, uint32_t at, uint32_t srtt_us)
{
	return call->last && at - (uint32_t)call->last < srtt_us >> BBR3_RING_SPACING_SHIFT;
}

/* Returns whether packets were sent after the pending call; `sent` counts packets since the start. */
BBR3_INLINE uint32_t bbr3_ring_is_due(const struct bbr3_call *call, uint32_t sent)
{
	return call->is_pending && call->sent != sent;
}

/* Converts the pending call to an entry, unless the last entry is too recent. */
BBR3_INLINE void bbr3_ring_settle(struct bbr3_ring *ring, struct bbr3_call *call, uint32_t sent, uint32_t srtt_us,
				  uint32_t is_app_limited)
{
	struct bbr3_moment *entry;

	call->is_pending = 0;
	if (bbr3_ring_is_early(call, call->at, srtt_us))
		return;
	entry = bbr3_ring_at(ring, ring->next);
	entry->at = call->at;
	entry->inflight = call->inflight + sent - call->sent;
	entry->lost = call->lost;
	entry->is_app_limited = is_app_limited;
	call->last = 1ULL << 32 | call->at;
	ring->next++;
	if (ring->next - ring->latest > BBR3_RING_ENTRIES)
		ring->latest = ring->next - BBR3_RING_ENTRIES;
}

/*
 * Called before packets are sent, if the last entry is old enough. `sent` is the number of packets sent since the
 * start.
 */
BBR3_INLINE void bbr3_ring_on_send(struct bbr3_call *call, const struct bbr3_moment *now, uint32_t sent,
				   uint32_t delivered)
{
	call->is_pending = 1;
	call->sent = sent;
	call->at = now->at;
	call->inflight = now->inflight;
	call->lost = now->lost;
	call->is_app_limited = now->is_app_limited;
	call->delivered = delivered;
}

/* Returns the entry of a packet sent at `sent_at`, which must not decrease between calls; 0 without an entry. */
BBR3_INLINE struct bbr3_moment *bbr3_ring_find(struct bbr3_ring *ring, uint32_t sent_at)
{
	uint32_t step;

	if (!ring->next)
		return 0;
	/* The verifier requires the bound. */
	for (step = 0; step < BBR3_RING_ENTRIES; step++) {
		if (ring->next - ring->latest < 2)
			break;
		if ((int32_t)(sent_at - bbr3_ring_at(ring, ring->latest + 1)->at) < 0)
			break;
		ring->latest++;
	}
	return bbr3_ring_at(ring, ring->latest);
}

#endif
