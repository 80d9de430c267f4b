/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets in flight when a packet was sent. A patched kernel stores that with each packet; here a ring stores it for
 * single moments.
 *
 * The kernel queries the size of a burst before it sends (min_tso_segs). The packets in flight at that moment, and
 * those sent until the next query, make an entry. When a packet is acknowledged, the kernel knows its time of
 * transmission; the last entry before that is used. Entries are at least 1/32 of a round trip apart, so that the ring
 * covers two. Included by bbr3.bpf.c and its test.
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
	uint32_t next;     /* count of entries that have been written */
	uint32_t latest;   /* number of the entry of the last acknowledged packet */
	uint32_t sent;     /* packets sent since the start, before `pending` */
	uint32_t has_pending;
	struct bbr3_moment pending; /* of the last call; `inflight` without packets sent since */
	struct bbr3_moment entries[BBR3_RING_ENTRIES];
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

/* `sent` packets were sent since the start: if some of them after the last call, that becomes an entry. */
BBR3_INLINE void bbr3_ring_settle(struct bbr3_ring *ring, uint32_t sent, uint32_t srtt_us)
{
	uint32_t count = sent - ring->sent;
	struct bbr3_moment *entry;

	if (!ring->has_pending || !count)
		return;
	ring->has_pending = 0;
	if (ring->next) {
		entry = bbr3_ring_at(ring, ring->next - 1);
		if (ring->pending.at - entry->at < srtt_us >> BBR3_RING_SPACING_SHIFT)
			return;
	}
	entry = bbr3_ring_at(ring, ring->next);
	*entry = ring->pending;
	entry->inflight += count;
	ring->next++;
	if (ring->next - ring->latest > BBR3_RING_ENTRIES)
		ring->latest = ring->next - BBR3_RING_ENTRIES;
}

/* Packets are about to be sent. */
BBR3_INLINE void bbr3_ring_on_send(struct bbr3_ring *ring, const struct bbr3_moment *now, uint32_t sent,
				   uint32_t srtt_us)
{
	bbr3_ring_settle(ring, sent, srtt_us);
	ring->pending = *now;
	ring->sent = sent;
	ring->has_pending = 1;
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
