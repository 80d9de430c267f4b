/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules of bbr_cpu and bbr3 for senders that are short of CPU: after each ACK that BBR has handled, a rule may
 * change its decision.
 *
 * Plain integer C without the kernel's types and helpers, so that a test compiles it as an ordinary program. The same
 * rules in Rust are in crates/cc/src/bbr_cpu; tests/vectors/bbr_cpu.json tests both. There are no loops and no signed
 * divisions, so that the verifier of Linux 6.1 accepts the program.
 */
#ifndef THALWEG_CPU_RULES_RULE_H
#define THALWEG_CPU_RULES_RULE_H

#include <stdint.h>

/* Inlined, because the verifier knows less about the arguments of a called function. */
#define RULE_FUNCTION static inline __attribute__((always_inline))

enum rule { RULE_PAPER, RULE_SCHEDULE };

/* BBR's modes, numbered as the kernel numbers them. */
enum rule_mode { RULE_STARTUP, RULE_DRAIN, RULE_PROBE_BW, RULE_PROBE_RTT };

/* BBR's gains are in units of 1/256; its bandwidth in packets per microsecond, times 2^24. */
#define RULE_GAIN_UNIT 256
#define RULE_BW_SHIFT 24

/* BBR's smallest window in packets. */
#define RULE_MIN_CWND 4

/* The state of loss recovery after a timeout. */
#define RULE_CA_LOSS 4

/* Differences between versions of BBR, as in crates/cc. */
struct rule_version {
	uint32_t startup_gain;     /* pacing gain of STARTUP */
	uint32_t expected_percent; /* expected data in flight, in percent of a BDP */
	uint32_t missed_ratio;     /* stalls that cost at most 1/missed_ratio of the time are left to BBR's probing */
	uint32_t missed_us;        /* a silence counts as a stall if it missed more than this of the schedule */
};

/*
 * Version 1 probes at 1.25 times the bandwidth, which compensates for stalls that cost up to 1 - 1/1.25 = 1/5 of the
 * time. The gain of STARTUP is 2/ln 2, as rounded by BBR.
 */
static const struct rule_version rule_version_1 = {
	.startup_gain = RULE_GAIN_UNIT * 2885 / 1000 + 1,
	.expected_percent = 100,
	.missed_ratio = 5,
	/*
	 * A burst is the data of 2^-10 s. After a late one, pacing lets the next burst leave earlier by up to half of that
	 * time, about 500 us (Linux: tcp_update_skb_after_send()).
	 */
	.missed_us = 500,
};

/* Version 3 probes less often, and does not compensate for stalls in between. */
static const struct rule_version rule_version_3 __attribute__((unused)) = {
	.startup_gain = RULE_GAIN_UNIT * 277 / 100 + 1,
	.expected_percent = 84,
	.missed_ratio = 20,
	/* Timers alone are late by tens of microseconds. */
	.missed_us = 100,
};

/* State after an ACK. */
struct rule_input {
	/* The connection. Its clock is in microseconds, with an arbitrary origin. */
	uint64_t now_us;
	uint64_t departure_us;   /* time at which pacing allows the next packet; in the past: it could have left then */
	uint64_t bytes_sent;     /* since the start, retransmissions included */
	uint64_t inflight_bytes; /* bytes sent, retransmissions included, minus bytes acknowledged */
	uint32_t mss;
	uint32_t srtt_us;
	uint32_t rtt_us; /* that this ACK has measured; 0: none */
	uint32_t snd_cwnd;
	uint32_t prior_cwnd;     /* before BBR has handled this ACK */
	uint32_t inflight;       /* packets in flight */
	uint32_t prior_inflight; /* before this ACK */
	uint32_t acked;          /* packets delivered according to this ACK */
	uint32_t delivered;      /* packets, since the start */
	uint32_t lost;           /* packets, since the start */
	uint32_t ca_state;       /* of loss recovery: 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss */
	uint32_t is_held_back;   /* whether the application or the receiver limits the sender */
	uint32_t rate_app_limited; /* whether the latest rate sample was limited by the application */
	uint64_t pacing_rate_bytes_per_s; /* as BBR has set it */
	uint64_t max_pacing_rate_bytes_per_s;

	/* BBR's own state, which this ACK has updated. */
	uint64_t bw;         /* BBR's bandwidth estimate: 0 before the first sample */
	uint32_t min_rtt_us; /* 4294967295: unknown */
	uint32_t mode;
	uint32_t full_bw_count; /* in STARTUP: round trips in which the bandwidth did not grow */
	/* Only in version 3. */
	uint32_t inflight_bound; /* short-term bound of the packets in flight; 0: none */
	uint32_t unbounded_cwnd; /* cwnd before losses bound it; 0: as `snd_cwnd` */
};

/* The state of a connection for `paper`: zero at its start. */
struct rule_paper {
	uint32_t smoothed_inflight_packets;
	uint32_t has_smoothed;      /* whether there is a smoothed value yet */
	uint32_t has_probed_rtt;    /* whether the connection has been in PROBE_RTT */
	uint64_t probe_rtt_seen_us; /* time of the last ACK in PROBE_RTT */
};

/* The state of a connection for `schedule`: zero at its start. */
struct rule_schedule {
	/* The previous ACK, and the values set then. */
	uint64_t seen_us; /* 0: there was none */
	uint64_t free_us; /* time from which pacing allowed the next packet */
	uint64_t bytes_sent;
	uint64_t rate;     /* BBR's */
	uint64_t set_rate; /* the rule's */
	uint32_t set_cwnd;
	uint32_t delivered;
	uint32_t lost;

	int64_t owed; /* debt of pacing in byte-microseconds; negative: data was sent ahead */

	/* Recent totals: time available for sending, and the part of it missed off CPU. */
	uint64_t passed_us;
	uint64_t missed_us;

	/* Stalls: times off CPU. If stall_us is 0, the members below are unused, except last_stall_us and STARTUP's. */
	uint64_t stall_us; /* longest recent stall; 0: too rare to compensate */
	uint64_t last_stall_us;
	uint64_t stalled_at_us;
	/*
	 * Maximum bandwidth between stalls, in the current time window and in the previous one, the start of the current
	 * window, and the time and `delivered` at the start of the current sample.
	 */
	uint64_t bw;
	uint64_t bw_before;
	uint64_t bw_since_us;
	uint64_t mark_us;
	uint32_t mark_delivered;

	/*
	 * STARTUP: the time at which `flat_stalls` last increased, BBR's count of round trips without growth, the number of
	 * them with a stall, and whether a stall has occurred since that time.
	 */
	uint64_t flat_at_us;
	uint32_t full_bw_count;
	uint32_t flat_stalls;
	uint32_t has_stalled;

	/* Losses in units of 1/50 packet: the excess over 2 %, and the part not yet offset by deliveries. */
	uint64_t excess;
	uint64_t unpaid;
	uint64_t cap;         /* packets that the path can hold, times 256; 0: no known bound */
	uint64_t known;       /* level up to which the cap recovers quickly */
	uint64_t peak;        /* maximum number of packets in flight since the last congestion */
	uint32_t settled;     /* value of `delivered` at which the last congestion has passed */
	uint32_t is_settling;
};

struct rule_state {
	struct rule_paper paper;
	struct rule_schedule schedule;
};

/* Changes by the rule; zero leaves the value set by BBR. */
struct rule_output {
	uint64_t pacing_rate_bytes_per_s;
	uint32_t pacing_gain; /* in BBR's own state, until BBR sets it again */
	uint32_t snd_cwnd;
	uint32_t is_startup_over; /* the pipe is full: STARTUP ends */
	uint32_t full_bw_count;   /* BBR's count of round trips without growth */
	uint32_t is_min_rtt_fresh; /* min_rtt was confirmed, which postpones PROBE_RTT */
	uint32_t boosted; /* whether the rule has raised the pacing rate at this ACK */
};

#include "paper.h"
#include "schedule.h"

/* Returns the interval that BBR is to use for a rate sample of `delivered` packets in `interval_us`. */
RULE_FUNCTION uint64_t rule_interval(enum rule rule, const struct rule_state *state, uint64_t now_us,
				     uint64_t min_rtt_us, uint64_t delivered, uint64_t interval_us)
{
	return rule == RULE_SCHEDULE ?
		       rule_schedule_interval(&state->schedule, now_us, min_rtt_us, delivered, interval_us) :
		       interval_us;
}

/* Processes an ACK that BBR has handled. `out` must be zero before the call. */
RULE_FUNCTION void rule_step(enum rule rule, const struct rule_version *version, struct rule_state *state,
			     const struct rule_input *in, struct rule_output *out)
{
	switch (rule) {
	case RULE_PAPER:
		rule_paper(&state->paper, version, in, out);
		break;
	case RULE_SCHEDULE:
		rule_schedule(&state->schedule, version, in, out);
		break;
	}
}

#endif
