/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets in flight when a packet was sent. A patched kernel stores that with each packet; here a ring stores it for
 * single moments.
 *
 * The kernel queries the size of a burst before it sends (min_tso_segs). The packets in flight at that moment, and
 * those sent until the next query, make an entry. When a packet is acknowledged, the kernel knows its time of
 * transmission; the last entry before that is used. Entries are at least 1/32 of a round trip apart, so that the ring
 * covers two. Included by bbr3.bpf.c and its test.
 *
 * The latest call is stored in the socket, apart from the ring: most calls access neither the ring nor its map.
 */
#ifndef THALWEG_BBR3_INFLIGHT_RING_H
#define THALWEG_BBR3_INFLIGHT_RING_H

#include "fixed_point.h"

#define BBR3_RING_ENTRIES 64
#define BBR3_RING_SPACING_SHIFT 5
#define BBR3_RING_TIME_SHIFT 10

struct bbr3_moment {
	uint32_t at;       /* nanoseconds / 1024: a shift costs less than a division */
	uint32_t inflight; /* packets, with those that were sent then */
	uint32_t lost;     /* packets since the start */
	uint32_t is_app_limited;
};

struct bbr3_ring {
	uint32_t next;   /* count of entries that have been written */
	uint32_t latest; /* number of the entry of the last acknowledged packet */
	struct bbr3_moment entries[BBR3_RING_ENTRIES];
};

/* The latest call; all zero at the start. */
struct bbr3_call {
	uint64_t last; /* time of the last entry, with bit 32 set; 0 before the first one */
	uint32_t is_pending;
	uint32_t sent; /* packets sent since the start, before the call */
	uint32_t at;
	uint32_t inflight; /* without what was sent since */
	uint32_t lost;
	uint32_t delivered; /* packets since the start */
	uint32_t is_app_limited;
};

/*
 * Converts the time of a packet, known in microseconds, for bbr3_ring_find(): rounded up, so that its own entry is not
 * later.
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

/* The call that is due becomes an entry, unless the last one is too recent. */
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

/* Packets are about to be sent, long enough after the last entry. `sent` were sent since the start. */
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

/* The entry of a packet sent at `sent_at`, which must not decrease between calls. 0 if there is no entry yet. */
BBR3_INLINE struct bbr3_moment *bbr3_ring_find(struct bbr3_ring *ring, uint32_t sent_at)
{
	uint32_t step;

	if (!ring->next)
		return 0;
	/* The bound is for the verifier. */
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
