/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ECN marks, which the draft does not cover. As in Linux's version 3, an average of the share of marked packets
 * limits the packets in flight on paths with a min_rtt of at most 5 ms, where marks indicate a queue above a low
 * threshold. Until min_rtt has been that short, marks are ignored. Linux also requires a route setting for this
 * reaction (ecn_low), which no unpatched kernel supports.
 */
#ifndef THALWEG_BBR3_ECN_H
#define THALWEG_BBR3_ECN_H

#define BBR3_ECN_MAX_RTT_US 5000

/* Share by which inflight_shortterm is cut if all packets are marked: 1/3. */
#define BBR3_ECN_FACTOR (BBR3_UNIT / 3)

/* Share of marked packets above which too much is in flight. Two consecutive rounds at or above it end STARTUP. */
#define BBR3_ECN_THRESHOLD (BBR3_UNIT / 2)
#define BBR3_ECN_STARTUP_ROUNDS 2

/* After marks without losses, a probe starts with a growth of this share of inflight_longterm per round. */
#define BBR3_ECN_REPROBE (BBR3_UNIT / 2)

/* Counts the marks of a round trip. Returns their share; BBR3_INFINITE if it is unknown, or marks are ignored. */
BBR3_RARE uint32_t bbr3_update_ecn_alpha(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t delivered = ack->delivered - it->alpha_delivered, ratio;

	if (ack->has_ecn && it->min_rtt_us <= BBR3_ECN_MAX_RTT_US)
		it->is_ecn_eligible = 1;
	if (!it->is_ecn_eligible || !delivered)
		return BBR3_INFINITE;
	ratio = bbr3_ce_ratio(ack->delivered_ce - it->alpha_delivered_ce, delivered);
	it->ecn_alpha = bbr3_ecn_alpha(it->ecn_alpha, ratio);
	it->alpha_delivered = ack->delivered;
	it->alpha_delivered_ce = ack->delivered_ce;
	return ratio;
}

/* Called near the start of an ACK, after the count of rounds is updated. */
BBR3_INLINE void bbr3_update_ecn(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->is_round_start && (ack->has_ecn || it->is_ecn_eligible)) {
		uint32_t ratio = bbr3_update_ecn_alpha(it, ack);
		uint32_t is_high = ratio != BBR3_INFINITE && ratio >= BBR3_ECN_THRESHOLD;

		it->ecn_rounds = is_high && !it->is_full_bw_reached ? it->ecn_rounds + 1 : 0;
		if (it->ecn_rounds >= BBR3_ECN_STARTUP_ROUNDS)
			bbr3_end_startup(it);
	}
	if (it->is_ecn_eligible && ack->delivered_ce != it->ce_seen)
		it->is_ecn_in_round = 1;
	it->ce_seen = ack->delivered_ce;
}

/* Returns whether marks or losses show that too much was in flight when the acknowledged packets were sent. */
BBR3_INLINE uint32_t bbr3_is_too_high(const struct bbr3 *it, const struct bbr3_ack *ack)
{
	return bbr3_is_loss_too_high(ack->lost - ack->tx_lost, ack->tx_in_flight) ||
	       (it->is_ecn_eligible && ack->sample_ce > bbr3_scale(ack->sample_delivered, BBR3_ECN_THRESHOLD));
}

/* Returns inflight_shortterm after the reduction for marks. */
BBR3_INLINE uint32_t bbr3_ecn_bound(const struct bbr3 *it)
{
	return bbr3_scale(it->inflight_shortterm, BBR3_UNIT - (it->ecn_alpha * BBR3_ECN_FACTOR >> BBR3_GAIN_SHIFT));
}

/* Returns whether the flow probes immediately, because only marks without losses have limited it. */
BBR3_INLINE uint32_t bbr3_is_time_to_reprobe(const struct bbr3 *it, const struct bbr3_ack *ack)
{
	return it->is_ecn_eligible && it->has_ecn_in_cycle && !it->has_loss_in_cycle && ack->ca_state == BBR3_CA_OPEN;
}

/* Returns the number of rounds of growth that a probe after marks without losses skips. */
BBR3_INLINE uint32_t bbr3_reprobe_rounds(const struct bbr3 *it)
{
	return bbr3_min(bbr3_log2(bbr3_scale(it->inflight_longterm, BBR3_ECN_REPROBE)), BBR3_MAX_UP_ROUNDS);
}

/* Called at the end of an ACK: notes losses and marks in this cycle of PROBE_BW. */
BBR3_INLINE void bbr3_note_cycle(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->has_loss_in_cycle |= ack->lost != ack->tx_lost;
	it->has_ecn_in_cycle |= ack->sample_ce != 0;
}

#endif
