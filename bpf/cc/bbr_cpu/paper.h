/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule `paper`: K. Elmenhorst, N. Aschenbruck, "2BRobust - Overcoming TCP BBR Performance Degradation in Virtual Machines
 * under CPU Contention", arXiv:2601.05665v1. It cures slices far below a round trip.
 *
 * Included by rule.h.
 */
#ifndef THALWEG_BBR_CPU_PAPER_H
#define THALWEG_BBR_CPU_PAPER_H

/* BBR leaves 1 % of the bandwidth unused when it paces, so that queues drain. */
#define RULE_PACING_PERCENT 99

/* Bytes per second of `gain` times the bandwidth, as BBR itself computes it, up to what the socket allows. */
RULE_FUNCTION uint64_t rule_pacing_rate(const struct rule_input *in, uint32_t gain)
{
	/* 64 bits hold this up to 3 Tbit/s at the highest gain. */
	uint64_t rate = in->bw * in->mss * gain / RULE_GAIN_UNIT;

	rate = rate * (1000000 / 100 * RULE_PACING_PERCENT) >> RULE_BW_SHIFT;
	return rate < in->max_pacing_rate_bytes_per_s ? rate : in->max_pacing_rate_bytes_per_s;
}

/* Packets that fill the path once: bandwidth x min_rtt, rounded up. Meaningless before both are known. */
RULE_FUNCTION uint64_t rule_bdp_packets(const struct rule_input *in)
{
	return (in->bw * in->min_rtt_us + (1ULL << RULE_BW_SHIFT) - 1) >> RULE_BW_SHIFT;
}

/* The gain of STARTUP, 2/ln 2, as BBR rounds it: 2885/1000 in units of 1/256, and 1. */
#define RULE_HIGH_GAIN (RULE_GAIN_UNIT * 2885 / 1000 + 1)

/* What is in flight is smoothed with weight 1/4 for the new value. */
#define RULE_PAPER_SMOOTHING 4

/* For so many smoothed round trips after PROBE_RTT little is in flight because BBR wants it so. */
#define RULE_PAPER_ROUNDS_AFTER_PROBE_RTT 3

/*
 * The paper's rule. A sender that is on CPU all the time keeps at least one BDP in flight in PROBE_BW, unless its application
 * has nothing to send. If less is in flight, pacing has missed its moments while the sender was off CPU: it paces with the
 * gain of STARTUP to catch up.
 */
RULE_FUNCTION void rule_paper(struct rule_paper *state, const struct rule_input *in, struct rule_output *out)
{
	uint32_t inflight;

	if (in->mode == RULE_PROBE_RTT) {
		state->has_probed_rtt = 1;
		state->probe_rtt_seen_us = in->now_us;
	}
	if (in->mode != RULE_PROBE_BW || in->rate_app_limited || !in->mss)
		return;
	inflight = in->inflight_bytes / in->mss;
	if (state->has_smoothed)
		inflight = state->smoothed_inflight_packets - state->smoothed_inflight_packets / RULE_PAPER_SMOOTHING +
			   inflight / RULE_PAPER_SMOOTHING;
	state->smoothed_inflight_packets = inflight;
	state->has_smoothed = 1;

	if (inflight >= rule_bdp_packets(in))
		return;
	if (state->has_probed_rtt &&
	    in->now_us - state->probe_rtt_seen_us <= (uint64_t)RULE_PAPER_ROUNDS_AFTER_PROBE_RTT * in->srtt_us)
		return;
	out->pacing_gain = RULE_HIGH_GAIN;
	out->pacing_rate_bytes_per_s = rule_pacing_rate(in, RULE_HIGH_GAIN);
	out->boosted = 1;
}

#endif
