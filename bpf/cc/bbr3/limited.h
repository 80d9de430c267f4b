/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples of packets that were sent in PROBE_RTT do not show the bandwidth (draft: MarkConnectionAppLimited). The
 * kernel has a mark for such packets, `app_limited`, which programs may write only on some kernels. Therefore, the flow
 * has a separate mark, for packets that are sent while `delivered` is between two values.
 */
#ifndef THALWEG_BBR3_LIMITED_H
#define THALWEG_BBR3_LIMITED_H

/* Returns whether a packet that was sent at this value of `delivered` is marked. */
BBR3_INLINE uint32_t bbr3_is_marked(const struct bbr3 *it, uint32_t delivered)
{
	return it->has_marked && delivered - it->marked_from <= it->marked_until - it->marked_from;
}

/* Marks the packets that are sent until everything in flight now is delivered. */
BBR3_INLINE void bbr3_mark_limited(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (!it->has_marked)
		it->marked_from = ack->delivered;
	it->has_marked = 1;
	it->marked_until = ack->delivered + ack->inflight;
}

/* Called near the start of an ACK. */
BBR3_INLINE void bbr3_apply_marks(struct bbr3 *it, struct bbr3_ack *ack)
{
	if (!it->has_marked || !ack->interval_us)
		return;
	ack->is_app_limited |= bbr3_is_marked(it, ack->prior_delivered);
	if (bbr3_is_before(it->marked_until, ack->prior_delivered))
		it->has_marked = 0;
}

#endif
