/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule `paper`: K. Elmenhorst, N. Aschenbruck, "2BRobust - Overcoming TCP BBR Performance Degradation in Virtual
 * Machines under CPU Contention", arXiv:2601.05665v1.
 */
#ifndef THALWEG_CPU_RULES_PAPER_H
#define THALWEG_CPU_RULES_PAPER_H

/* BBR leaves 1 % of the bandwidth unused when it paces, so that queues drain. */
#define RULE_PACING_PERCENT 99

/* Returns `gain` times the bandwidth in bytes per second, as BBR computes it, up to the socket's limit. */
RULE_FUNCTION uint64_t rule_pacing_rate(const struct rule_input *in, uint32_t gain)
{
	/* 64 bits hold this up to 3 Tbit/s at the highest gain. */
	uint64_t rate = in->bw * in->mss * gain / RULE_GAIN_UNIT;

	rate = rate * (1000000 / 100 * RULE_PACING_PERCENT) >> RULE_BW_SHIFT;
	return rate < in->max_pacing_rate_bytes_per_s ? rate : in->max_pacing_rate_bytes_per_s;
}

/*
 * Returns the packets expected in flight: expected_percent of bandwidth x min_rtt, rounded up, or the short-term bound
 * if that is smaller. Invalid before bandwidth and min_rtt are known.
 */
RULE_FUNCTION uint64_t rule_expected_packets(const struct rule_version *version, const struct rule_input *in)
{
	uint64_t unit = 100ULL << RULE_BW_SHIFT;
	uint64_t packets = (in->bw * in->min_rtt_us * version->expected_percent + unit - 1) / unit;

	return in->inflight_bound && in->inflight_bound < packets ? in->inflight_bound : packets;
}

/* The volume in flight is smoothed with weight 1/4 for the new value. */
#define RULE_PAPER_SMOOTHING 4

/* Number of smoothed RTTs after PROBE_RTT in which the rule does not act. */
#define RULE_PAPER_ROUNDS_AFTER_PROBE_RTT 3

/*
 * The paper's rule. A sender that is on CPU all the time keeps at least one BDP in flight in PROBE_BW, unless its
 * application has nothing to send. If less is in flight, pacing has missed departures while the sender was off CPU, and
 * the rule paces with the gain of STARTUP to catch up, except in the first round trips after PROBE_RTT.
 */
RULE_FUNCTION void rule_paper(struct rule_paper *state, const struct rule_version *version, const struct rule_input *in,
			      struct rule_output *out)
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

	if (inflight >= rule_expected_packets(version, in))
		return;
	if (state->has_probed_rtt &&
	    in->now_us - state->probe_rtt_seen_us <= (uint64_t)RULE_PAPER_ROUNDS_AFTER_PROBE_RTT * in->srtt_us)
		return;
	out->pacing_gain = version->startup_gain;
	out->pacing_rate_bytes_per_s = rule_pacing_rate(in, version->startup_gain);
	out->boosted = 1;
}

#endif
