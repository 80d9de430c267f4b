/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Aggregation: the number of packets that ACKs acknowledge beyond the number that the bandwidth explains (section
 * "BBR.extra_acked"). The filter keeps the largest excess of the last 5 to 10 round trips, and of the last 1 to 2 in
 * STARTUP.
 */
#ifndef THALWEG_BBR3_AGGREGATION_H
#define THALWEG_BBR3_AGGREGATION_H

#define BBR3_EXTRA_ACKED_ROUNDS 5

/* An interval that has counted this number of packets is restarted. */
#define BBR3_EXTRA_ACKED_RESET (1 << 20)

/* Counts a round. When half of the filter window is complete, drops the older half. */
BBR3_RARE void bbr3_advance_extra_acked(struct bbr3 *it)
{
	uint32_t rounds = it->is_full_bw_reached ? BBR3_EXTRA_ACKED_ROUNDS : 1;

	if (++it->extra_acked_rounds < rounds)
		return;
	it->extra_acked_rounds = 0;
	it->extra_acked_slot = !it->extra_acked_slot;
	if (it->extra_acked_slot)
		it->extra_acked[1] = 0;
	else
		it->extra_acked[0] = 0;
}

/* draft: UpdateACKAggregation */
BBR3_INLINE void bbr3_update_aggregation(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t expected, extra;

	if (!ack->acked || !ack->interval_us)
		return;
	if (it->is_round_start)
		bbr3_advance_extra_acked(it);
	expected = bbr3_delivered_in(bbr3_bw(it), ack->delivered_us - it->extra_acked_since_us);
	if (it->extra_acked_delivered <= expected ||
	    it->extra_acked_delivered + ack->acked >= BBR3_EXTRA_ACKED_RESET) {
		it->extra_acked_delivered = 0;
		it->extra_acked_since_us = ack->delivered_us;
		expected = 0;
	}
	it->extra_acked_delivered = bbr3_min(it->extra_acked_delivered + ack->acked, BBR3_EXTRA_ACKED_RESET - 1);
	extra = bbr3_min(it->extra_acked_delivered - expected, ack->cwnd);
	if (it->extra_acked_slot)
		it->extra_acked[1] = bbr3_max(it->extra_acked[1], extra);
	else
		it->extra_acked[0] = bbr3_max(it->extra_acked[0], extra);
}

#endif
