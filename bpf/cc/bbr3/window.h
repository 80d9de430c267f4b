/* SPDX-License-Identifier: GPL-2.0-only */
/* The congestion window (section "Congestion Window"). */
#ifndef THALWEG_BBR3_WINDOW_H
#define THALWEG_BBR3_WINDOW_H

/* Gains of the window: 2 for delayed and aggregated ACKs, 2.25 in PROBE_BW_UP, 1 in PROBE_RTT with a cap of 0.5. */
#define BBR3_CWND_GAIN (BBR3_UNIT * 2)
#define BBR3_CWND_GAIN_UP (BBR3_UNIT * 9 / 4)
#define BBR3_CWND_GAIN_PROBE_RTT (BBR3_UNIT / 2)

/*
 * Minimum number of bursts that may be in flight if the BDP is smaller: in the sender's queue, in segmentation, at the
 * receiver.
 */
#define BBR3_OFFLOAD_BURSTS 3

/* Maximum time for which the allowance for aggregated ACKs adds packets at the bandwidth: 100 ms. */
#define BBR3_EXTRA_ACKED_MAX_US 100000

/* Updates the size of bursts, which depends on pacing rate and min_rtt; skips the division if neither has changed. */
BBR3_INLINE void bbr3_measure_burst(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->burst && it->burst_rate == ack->pacing_rate && it->burst_min_rtt_us == it->min_rtt_us)
		return;
	it->burst = bbr3_burst(ack->pacing_rate, ack->pacing_shift, it->min_rtt_us, ack->mss);
	it->burst_rate = ack->pacing_rate;
	it->burst_min_rtt_us = it->min_rtt_us;
}

/* Returns gain x BDP; the initial window before the first RTT sample (draft: BDPMultiple). */
BBR3_INLINE uint32_t bbr3_bdp_multiple(const struct bbr3 *it, uint32_t bw, uint32_t gain)
{
	return it->min_rtt_us == BBR3_INFINITE ? it->init_cwnd : bbr3_bdp(bw, it->min_rtt_us, gain);
}

/* draft: QuantizationBudget */
BBR3_INLINE uint32_t bbr3_quantize(const struct bbr3 *it, uint32_t inflight)
{
	inflight = bbr3_max(inflight, BBR3_OFFLOAD_BURSTS * it->burst);
	inflight = bbr3_max(inflight, BBR3_MIN_CWND);
	return it->state == BBR3_PROBE_BW_UP ? inflight + 2 : inflight;
}

/* Returns the number of packets that fill the path once (draft: Inflight). */
BBR3_INLINE uint32_t bbr3_inflight(const struct bbr3 *it, uint32_t bw)
{
	return bbr3_quantize(it, bbr3_bdp_multiple(it, bw, BBR3_UNIT));
}

/* Returns the BDP, limited by cwnd if congestion has reduced it (draft: TargetInflight). */
BBR3_INLINE uint32_t bbr3_target_inflight(const struct bbr3 *it, const struct bbr3_ack *ack)
{
	return bbr3_min(bbr3_inflight(it, bbr3_bw(it)), ack->cwnd);
}

BBR3_INLINE uint32_t bbr3_probe_rtt_cwnd(const struct bbr3 *it)
{
	return bbr3_max(bbr3_bdp_multiple(it, bbr3_bw(it), BBR3_CWND_GAIN_PROBE_RTT), BBR3_MIN_CWND);
}

/* Returns the additional packets in flight for aggregated ACKs (section "BBR.extra_acked"). */
BBR3_INLINE uint32_t bbr3_aggregation_allowance(const struct bbr3 *it)
{
	return bbr3_min(bbr3_max(it->extra_acked[0], it->extra_acked[1]),
			bbr3_delivered_in(bbr3_bw(it), BBR3_EXTRA_ACKED_MAX_US));
}

/* draft: UpdateMaxInflight */
BBR3_INLINE uint32_t bbr3_max_inflight(const struct bbr3 *it)
{
	uint32_t gain = BBR3_CWND_GAIN;

	if (it->state == BBR3_PROBE_BW_UP)
		gain = BBR3_CWND_GAIN_UP;
	else if (it->state == BBR3_PROBE_RTT)
		gain = BBR3_UNIT;
	return bbr3_quantize(it, bbr3_saturate((uint64_t)bbr3_bdp_multiple(it, bbr3_bw(it), gain) +
						    bbr3_aggregation_allowance(it)));
}

/* draft: BoundCwndForModel (section "Bounding cwnd Based on Recent Congestion"). */
BBR3_INLINE uint32_t bbr3_cwnd_cap(const struct bbr3 *it)
{
	uint32_t cap = BBR3_INFINITE;

	if (it->state == BBR3_PROBE_BW_CRUISE || it->state == BBR3_PROBE_RTT)
		cap = bbr3_with_headroom(it->inflight_longterm);
	else if (bbr3_is_in_probe_bw(it))
		cap = it->inflight_longterm;
	return bbr3_max(bbr3_min(cap, it->inflight_shortterm), BBR3_MIN_CWND);
}

/* draft: SetCwnd (section "cwnd Adjustment Mechanism"). */
BBR3_INLINE void bbr3_set_cwnd(const struct bbr3 *it, struct bbr3_ack *ack)
{
	uint32_t cwnd = ack->cwnd;

	if (ack->acked) {
		uint32_t target = bbr3_max_inflight(it);

		if (it->is_full_bw_reached)
			cwnd = bbr3_min(cwnd + ack->acked, target);
		else if (cwnd < target || cwnd < 2 * it->init_cwnd)
			cwnd += ack->acked;
		cwnd = bbr3_max(cwnd, BBR3_MIN_CWND);
	}
	cwnd = bbr3_min(cwnd, ack->cwnd_clamp);
	if (it->state == BBR3_PROBE_RTT)
		cwnd = bbr3_min(cwnd, bbr3_probe_rtt_cwnd(it));
	ack->unbounded_cwnd = cwnd;
	ack->cwnd = bbr3_min(cwnd, bbr3_cwnd_cap(it));
}

/* Saves the window, to restore it later (draft: SaveCwnd). */
BBR3_INLINE void bbr3_save_cwnd(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->prior_ca_state < BBR3_CA_RECOVERY && it->state != BBR3_PROBE_RTT)
		it->prior_cwnd = ack->cwnd;
	else
		it->prior_cwnd = bbr3_max(it->prior_cwnd, ack->cwnd);
}

/* draft: RestoreCwnd */
BBR3_INLINE void bbr3_restore_cwnd(const struct bbr3 *it, struct bbr3_ack *ack)
{
	ack->cwnd = bbr3_max(ack->cwnd, it->prior_cwnd);
}

#endif
