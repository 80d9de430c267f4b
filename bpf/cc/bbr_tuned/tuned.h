/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decisions of bbr_tuned and bbr_auto. The kernel's BBR (version 1) measures the path; this code makes the
 * decisions with parameters instead of the kernel's constants.
 *
 * Plain integer C without the kernel's types and helpers, so that a test compiles it as an ordinary program. The same
 * decisions in Rust are in crates/cc/src/bbr; tests/vectors/bbr_tuned.txt.gz tests both. There are no loops and no
 * signed divisions, so that kernels from 6.1 on accept the program.
 */
#ifndef THALWEG_BBR_TUNED_H
#define THALWEG_BBR_TUNED_H

#include <stdint.h>

/* Always inlined: in a function that is called, the verifier knows less about the arguments. */
#define TUNED_FUNCTION static inline __attribute__((always_inline))

/*
 * The parameters, in the order of `Settings::words` and `Response::words` in crates/cc/src/bbr.
 * docs/concepts/bbr-tuned.md describes them. Gains and shares are in units of 1/256.
 */
struct tuned_params {
	uint32_t probe_gain;
	uint32_t probe_drain_gain;
	uint32_t cruise_gain;
	uint32_t cruise_phases;
	uint32_t probe_interval_us; /* 0: cruise_phases sets the time between probes */
	uint32_t probe_jitter;
	uint32_t cwnd_gain;
	uint32_t drain_gain;
	uint32_t startup_gain;
	uint32_t startup_cwnd_gain;
	uint32_t probe_rtt_interval; /* in units of `clock` */
	uint32_t probe_rtt_duration;
	uint32_t probe_rtt_cwnd;
	uint32_t probe_rtt_bdp_share;
	uint32_t loss_threshold; /* in units of 2^-16 */
	uint32_t loss_beta;
	uint32_t headroom;
	uint32_t aggregation_gain;
	uint32_t is_policer_detected;
	/* Parameters of bbr_auto's rule; auto_weight is 0 without it. */
	uint32_t auto_max_gain;
	uint32_t auto_min_gain;
	uint32_t auto_loss_response;
	uint32_t auto_queue_response;
	uint32_t auto_weight;
};

/* BBR's modes, numbered as the kernel numbers them. */
enum tuned_mode { TUNED_STARTUP, TUNED_DRAIN, TUNED_PROBE_BW, TUNED_PROBE_RTT };

/* Phases of PROBE_BW: probing, draining, and the first cruising phase. */
enum tuned_phase { TUNED_PHASE_PROBE, TUNED_PHASE_DRAIN, TUNED_PHASE_CRUISE };

/* Gains are in units of 1/256; bandwidths in packets per microsecond, times 2^24. */
#define TUNED_UNIT 256
#define TUNED_BW_SHIFT 24

#define TUNED_MIN_CWND 4
#define TUNED_INITIAL_CWND 10
#define TUNED_NO_RTT 0xffffffffU

/* State of loss recovery from which on losses are being repaired. */
#define TUNED_CA_RECOVERY 3

/* Percentage of the bandwidth at which BBR paces: 1 % stays unused. */
#define TUNED_PACING_PERCENT 99

/* Below this pacing rate, the minimum burst is one packet; otherwise it is two. Then: the maximum burst. */
#define TUNED_SLOW_BYTES_PER_S 150000
#define TUNED_MAX_BURST_BYTES 65215
#define TUNED_MAX_BURST_PACKETS 127

/* Maximum time whose packets are allowed for aggregated ACKs. */
#define TUNED_MAX_BUNCH_US 100000

/* The kernel's state of BBR at an ACK. */
struct tuned_model {
	uint32_t mode;
	uint32_t min_rtt_us; /* TUNED_NO_RTT if unknown */
	uint32_t is_policed; /* whether the rate of a policer is in use */
	uint32_t prior_ca_state;
	uint32_t has_seen_rtt;
};

/*
 * The connection and BBR at an ACK. `before` and the state of the connection are read before the kernel's BBR handles
 * the ACK, `after` and the state of BBR after that.
 */
struct tuned_ack {
	struct tuned_model before;
	struct tuned_model after;

	/* State of the connection. */
	uint64_t now_us;         /* time of the latest delivery */
	uint64_t clock;          /* a clock for PROBE_RTT, in any unit */
	uint32_t departure_us;   /* time until pacing allows the next packet */
	uint32_t mss;
	uint32_t srtt_us;
	uint32_t cwnd;           /* before the ACK */
	uint32_t cwnd_clamp;
	uint32_t inflight;
	uint32_t prior_inflight; /* before the ACK */
	uint32_t acked;
	uint32_t losses;         /* detected by this ACK */
	uint32_t rtt_us;         /* measured by this ACK; TUNED_NO_RTT without a sample */
	uint32_t delivered;      /* since the start */
	uint32_t lost;           /* since the start */
	uint32_t ca_state;
	uint32_t pacing_shift;   /* a burst is the data of 2^-pacing_shift s */
	uint64_t pacing_rate;    /* bytes per second, before the ACK */
	uint64_t max_pacing_rate;
	uint32_t random[2];      /* for entering PROBE_BW, and for jitter */

	/* State of BBR. */
	uint64_t bw;     /* bandwidth in use */
	uint64_t max_bw;
	uint32_t is_round_start;
	uint32_t is_pipe_full;
	uint32_t is_conserving; /* whether one packet is sent per delivered packet */
	uint32_t extra_acked;   /* largest recent number of packets acknowledged beyond those that `bw` explains */
	uint32_t prior_cwnd;    /* before recovery or PROBE_RTT */
	uint32_t is_min_rtt_fresh; /* whether this ACK has measured or confirmed the smallest round-trip time */
};

struct tuned_output {
	uint64_t pacing_rate;
	uint32_t cwnd;
	uint32_t pacing_gain;
	uint32_t cwnd_gain;
	uint32_t is_probe_rtt_drained; /* whether the time in PROBE_RTT begins with this ACK, because little is in flight */
};

/* Packet counts of a part of the cycle. */
struct tuned_tally {
	uint64_t delivered;
	uint64_t lost;
};

/* Measurements of bbr_auto since the start of the latest probe, and the resulting gain. */
struct tuned_auto {
	struct tuned_tally probe;
	struct tuned_tally cruise;
	uint64_t queued_us; /* sum of the queueing delays while cruising */
	uint64_t samples;
	uint64_t gain;      /* in units of 2^-16, so that a small weight has an effect */
	uint64_t tail_rounds; /* rounds until losses are no longer attributed to the probe */
};

/* State of a connection; zero before tuned_begin(). */
struct tuned_state {
	uint64_t phase_start_us;
	uint64_t next_probe_us;
	uint64_t next_tick_us;      /* earliest time of the next tick of the clock of the bandwidth maximum */
	uint64_t min_rtt_at;        /* time of the smallest round-trip time, by `clock` */
	uint64_t probe_rtt_done_at; /* 0 if too much is still in flight */
	uint64_t bound;             /* maximum packets in flight x 256, because of losses; 0 without a bound */
	uint32_t phase;
	uint32_t phases;            /* number of phases in this cycle */
	uint32_t tick_progress;
	uint32_t pacing_gain;
	uint32_t probe_gain;        /* gain of the probe in this cycle */
	uint32_t drain_gain;
	/* For the loss bound, in this round. */
	uint32_t peak;
	uint32_t start_lost;
	uint32_t start_delivered;
	uint32_t is_settling;
	struct tuned_auto rule;
};

TUNED_FUNCTION uint64_t tuned_min(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

TUNED_FUNCTION uint64_t tuned_max(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

/* Returns 2 minus this gain: as far below 1 as `gain` is above 1. */
TUNED_FUNCTION uint32_t tuned_complement(uint32_t gain)
{
	return gain < 2 * TUNED_UNIT ? 2 * TUNED_UNIT - gain : 0;
}

/* Returns `gain` times the bandwidth-delay product in packets, rounded up; without an RTT, the initial window. */
TUNED_FUNCTION uint64_t tuned_bdp(uint64_t bw, uint32_t min_rtt_us, uint32_t gain)
{
	if (min_rtt_us == TUNED_NO_RTT)
		return TUNED_INITIAL_CWND;
	return (bw * min_rtt_us * gain / TUNED_UNIT + (1ULL << TUNED_BW_SHIFT) - 1) >> TUNED_BW_SHIFT;
}

/* Returns `gain` times `bw`, less 1 %, in bytes per second, with the kernel's rounding; at most max_pacing_rate. */
TUNED_FUNCTION uint64_t tuned_rate(const struct tuned_ack *ack, uint64_t bw, uint32_t gain)
{
	uint64_t rate = bw * ack->mss * gain / TUNED_UNIT;

	rate = rate * (1000000 / 100 * TUNED_PACING_PERCENT) >> TUNED_BW_SHIFT;
	return tuned_min(rate, ack->max_pacing_rate);
}

/*
 * Returns the rate before the first bandwidth sample: a window per round-trip time, or per millisecond if that is
 * unknown, times the gain of STARTUP.
 */
TUNED_FUNCTION uint64_t tuned_initial_rate(const struct tuned_params *params, const struct tuned_ack *ack)
{
	uint64_t rtt_us = ack->srtt_us ? ack->srtt_us : 1000;

	return tuned_rate(ack, ((uint64_t)ack->cwnd << TUNED_BW_SHIFT) / rtt_us, params->startup_gain);
}

/* Returns the number of packets in a burst at a pacing rate. */
TUNED_FUNCTION uint64_t tuned_burst(const struct tuned_ack *ack, uint64_t pacing_rate)
{
	uint64_t bytes = tuned_min(pacing_rate >> (ack->pacing_shift & 31), TUNED_MAX_BURST_BYTES);
	uint64_t least = pacing_rate < TUNED_SLOW_BYTES_PER_S ? 1 : 2;

	/* The MSS of a connection is never zero; the check avoids an undefined division. */
	if (!ack->mss)
		return least;
	return tuned_min(tuned_max(bytes / ack->mss, least), TUNED_MAX_BURST_PACKETS);
}

/* Returns a target plus three bursts, rounded up to an even number, plus two packets while probing. */
TUNED_FUNCTION uint64_t tuned_headroom(const struct tuned_ack *ack, uint64_t target, uint64_t pacing_rate,
				       uint32_t is_probing)
{
	uint64_t packets = target + 3 * tuned_burst(ack, pacing_rate);

	return packets + (packets & 1) + (is_probing ? 2 : 0);
}

#include "cycle.h"
#include "auto_gain.h"
#include "loss_bound.h"
#include "probe_rtt.h"
#include "window.h"

TUNED_FUNCTION void tuned_begin(struct tuned_state *it, const struct tuned_params *params, const struct tuned_ack *ack)
{
	it->min_rtt_at = ack->clock;
	it->phases = TUNED_PHASE_CRUISE + params->cruise_phases;
	it->pacing_gain = params->startup_gain;
	it->probe_gain = params->probe_gain;
	it->drain_gain = params->probe_drain_gain;
	it->rule.gain = (uint64_t)params->probe_gain << 8;
}

/* Returns the pacing rate; until the pipe is full, only the first RTT may lower it. */
TUNED_FUNCTION uint64_t tuned_pacing(const struct tuned_params *params, const struct tuned_ack *ack, uint32_t gain)
{
	uint64_t rate = tuned_rate(ack, ack->bw, gain), before = ack->pacing_rate;

	if (!ack->before.has_seen_rtt && ack->after.has_seen_rtt)
		before = tuned_initial_rate(params, ack);
	return ack->is_pipe_full || rate > before ? rate : before;
}

TUNED_FUNCTION void tuned_gains(const struct tuned_state *it, const struct tuned_params *params,
				const struct tuned_ack *ack, struct tuned_output *out)
{
	out->pacing_gain = TUNED_UNIT;
	out->cwnd_gain = TUNED_UNIT;
	switch (ack->after.mode) {
	case TUNED_STARTUP:
		out->pacing_gain = params->startup_gain;
		out->cwnd_gain = params->startup_cwnd_gain;
		break;
	case TUNED_DRAIN:
		out->pacing_gain = params->drain_gain;
		out->cwnd_gain = params->startup_cwnd_gain;
		break;
	case TUNED_PROBE_BW:
		out->pacing_gain = ack->after.is_policed ? TUNED_UNIT : tuned_phase_gain(it, params);
		out->cwnd_gain = params->cwnd_gain;
		break;
	}
}

/*
 * Called after the kernel's BBR has handled an event other than an ACK: a cwnd_event, or a change of the recovery
 * state.
 */
TUNED_FUNCTION void tuned_event(struct tuned_state *it, const struct tuned_params *params, const struct tuned_ack *ack)
{
	uint32_t was_probe_bw = ack->before.mode == TUNED_PROBE_BW;
	uint32_t is_probe_bw = ack->after.mode == TUNED_PROBE_BW;
	uint32_t has_held_rate = was_probe_bw && ack->before.is_policed && !ack->after.is_policed;

	if (ack->before.mode == TUNED_PROBE_RTT && ack->after.mode != TUNED_PROBE_RTT)
		tuned_leave_probe_rtt(it, ack->clock);
	if (is_probe_bw && (!was_probe_bw || has_held_rate))
		tuned_enter_cycle(it, params, ack);
}

TUNED_FUNCTION void tuned_step(struct tuned_state *it, const struct tuned_params *params, const struct tuned_ack *ack,
			       struct tuned_output *out)
{
	uint32_t was_probe_bw = ack->before.mode == TUNED_PROBE_BW;
	uint32_t was_probing, is_probing;

	/* The policer's rate has expired, so BBR enters PROBE_BW again. */
	if (was_probe_bw && ack->before.is_policed && !ack->after.is_policed)
		tuned_enter_cycle(it, params, ack);
	was_probing = was_probe_bw && it->phase == TUNED_PHASE_PROBE;
	tuned_update_losses(it, params, ack, was_probing);
	if (was_probe_bw && tuned_is_phase_over(it, params, ack))
		tuned_advance_cycle(it, params, ack->now_us, ack->random[1]);
	if (!was_probe_bw && ack->after.mode == TUNED_PROBE_BW)
		tuned_enter_cycle(it, params, ack);
	tuned_adapt_gain(it, params, ack, was_probing);
	tuned_update_probe_rtt(it, params, ack, out);

	tuned_gains(it, params, ack, out);
	it->pacing_gain = out->pacing_gain;
	out->pacing_rate = tuned_pacing(params, ack, out->pacing_gain);
	is_probing = ack->after.mode == TUNED_PROBE_BW && it->phase == TUNED_PHASE_PROBE;
	out->cwnd = tuned_cwnd(it, params, ack, out, is_probing);
}

#endif
