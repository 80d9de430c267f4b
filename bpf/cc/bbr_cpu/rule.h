/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule of bbr_cpu: after each ACK that BBR has handled, is the sender short of CPU, and what should it do about that?
 *
 * Plain integer C without the kernel's types and helpers, so that a test compiles it as an ordinary program. The same rule in
 * Rust is in crates/cc/src/bbr_cpu; tests/vectors/bbr_cpu.json holds the two together. No loops, no signed division: the
 * program is loaded by kernels from 6.1 on.
 *
 * `paper`: K. Elmenhorst, N. Aschenbruck, "2BRobust - Overcoming TCP BBR Performance Degradation in Virtual Machines under
 * CPU Contention", arXiv:2601.05665v1.
 */
#ifndef THALWEG_BBR_CPU_RULE_H
#define THALWEG_BBR_CPU_RULE_H

#include <stdint.h>

/* Which rule; the loader sets it by name (crates/agent/src/cc/rule.rs). */
enum rule { RULE_PAPER };

/* BBR's modes, numbered as the kernel numbers them. */
enum rule_mode { RULE_STARTUP, RULE_DRAIN, RULE_PROBE_BW, RULE_PROBE_RTT };

/* BBR's gains are in units of 1/256; its bandwidth in packets per microsecond, times 2^24. */
#define RULE_GAIN_UNIT 256
#define RULE_BW_SHIFT 24

/* What is known after an ACK. */
struct rule_input {
	/* The connection. Its clock is in microseconds and starts anywhere. */
	uint64_t now_us;
	uint32_t mss;
	uint32_t snd_cwnd;
	uint32_t packets_out;
	uint32_t srtt_us;
	uint64_t inflight_bytes; /* handed to the network and not acknowledged, retransmissions included */
	uint32_t ca_state;       /* 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss */
	uint32_t delivered;      /* packets, since the start */
	uint32_t lost;           /* packets, since the start */
	uint32_t rate_app_limited; /* was the rate that the connection last measured bounded by its application? */
	uint64_t pacing_rate_bytes_per_s;
	uint64_t max_pacing_rate_bytes_per_s;

	/* The rate sample of this ACK. */
	int32_t sample_delivered;    /* packets; negative: no sample */
	int32_t sample_losses;       /* packets that were marked lost */
	int64_t sample_interval_us;  /* below 1: no sample */
	int64_t sample_rtt_us;       /* below 0: no sample */
	uint32_t sample_acked;       /* packets that were acknowledged for the first time */
	uint32_t sample_app_limited; /* is the sample bounded by the application? */

	/* BBR's own state, which this ACK has updated. */
	uint64_t bw;         /* what BBR takes for the bandwidth: 0 before the first sample */
	uint32_t min_rtt_us; /* 4294967295: not known yet */
	uint32_t mode;
	uint32_t cycle_index;
	uint32_t pacing_gain;
	uint32_t cwnd_gain;
	uint32_t full_bw_reached;
};

/* What the rule keeps of a connection: zero at its start. */
struct rule_state {
	uint32_t smoothed_inflight_packets;
	uint32_t has_smoothed;       /* is there a smoothed value yet? */
	uint32_t has_probed_rtt;     /* has the connection been in PROBE_RTT? */
	uint64_t probe_rtt_seen_us;  /* when it last was */
};

/* What is to change: zero leaves what BBR has set. */
struct rule_output {
	uint64_t pacing_rate_bytes_per_s;
	uint32_t pacing_gain; /* in BBR's own state, until BBR sets it again */
	uint32_t snd_cwnd;
	uint32_t boosted; /* does this ACK count as one at which the sender was found short of CPU? */
};

/* BBR leaves 1 % of the bandwidth unused when it paces, so that queues drain. */
#define RULE_PACING_PERCENT 99

/* Bytes per second of `gain` times the bandwidth, as BBR itself computes it, up to what the socket allows. */
static inline uint64_t rule_pacing_rate(const struct rule_input *in, uint32_t gain)
{
	/* 64 bits hold this up to 3 Tbit/s at the highest gain. */
	uint64_t rate = in->bw * in->mss * gain / RULE_GAIN_UNIT;

	rate = rate * (1000000 / 100 * RULE_PACING_PERCENT) >> RULE_BW_SHIFT;
	return rate < in->max_pacing_rate_bytes_per_s ? rate : in->max_pacing_rate_bytes_per_s;
}

/* Packets that fill the path once: bandwidth x min_rtt, rounded up. Meaningless before both are known. */
static inline uint64_t rule_bdp_packets(const struct rule_input *in)
{
	return (in->bw * in->min_rtt_us + (1ULL << RULE_BW_SHIFT) - 1) >> RULE_BW_SHIFT;
}

/* The gain of STARTUP, 2/ln 2, as BBR rounds it: 2885/1000 in units of 1/256, and 1. */
#define RULE_HIGH_GAIN (RULE_GAIN_UNIT * 2885 / 1000 + 1)

/* `paper`: what is in flight is smoothed with weight 1/4 for the new value. */
#define RULE_PAPER_SMOOTHING 4

/* `paper`: for so many smoothed round trips after PROBE_RTT little is in flight because BBR wants it so. */
#define RULE_PAPER_ROUNDS_AFTER_PROBE_RTT 3

/*
 * The paper's rule. A sender that is on CPU all the time keeps at least one BDP in flight in PROBE_BW, unless its application
 * has nothing to send. If less is in flight, pacing has missed its moments while the sender was off CPU: it paces with the
 * gain of STARTUP to catch up.
 */
static inline void rule_paper(struct rule_state *state, const struct rule_input *in, struct rule_output *out)
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

/* One ACK. `out` is zero before. */
static inline void rule_step(enum rule rule, struct rule_state *state, const struct rule_input *in,
			     struct rule_output *out)
{
	switch (rule) {
	case RULE_PAPER:
		rule_paper(state, in, out);
		break;
	}
}

#endif
