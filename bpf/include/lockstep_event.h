/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One call of a congestion controller by the kernel: its inputs and its results.
 * crates/lockstep/src/lockstep_event.rs mirrors this file; a test there compares the two. Every member is 64 bits wide,
 * to avoid padding; signed values are sign-extended.
 */
#ifndef THALWEG_LOCKSTEP_EVENT_H
#define THALWEG_LOCKSTEP_EVENT_H

#define LOCKSTEP_PRIV_WORDS 13

enum lockstep_call {
	LOCKSTEP_INIT,
	LOCKSTEP_IN_ACK_EVENT,
	LOCKSTEP_PKTS_ACKED,
	LOCKSTEP_CONG_AVOID,
	LOCKSTEP_CONG_CONTROL,
	LOCKSTEP_SSTHRESH,
	LOCKSTEP_SET_STATE,
	LOCKSTEP_CWND_EVENT,
	LOCKSTEP_UNDO_CWND,
	LOCKSTEP_RELEASE,
};

struct lockstep_event {
	/* The callback, the connection, and the number of the call in that connection. */
	u64 call;
	u64 flow;
	u64 number;

	/*
	 * Clocks: jiffies before and after the call; the connection's clock, its earliest departure and its last
	 * transmission.
	 */
	u64 jiffies;
	u64 jiffies_after;
	u64 clock_ns;
	u64 wstamp_ns;
	u64 lsndtime;

	/* State of the connection before the call. */
	u64 ca_state;
	u64 mss;
	u64 srtt_us_8;
	u64 min_rtt_us;
	u64 inflight;
	u64 delivered;
	u64 delivered_ce;
	u64 delivered_mstamp_us;
	u64 lost;
	u64 snd_una;
	u64 snd_nxt;
	u64 is_cwnd_limited;
	u64 app_limited;
	u64 prior_cwnd;
	u64 gso_max_size;
	u64 pacing_shift;
	u64 pacing_status;

	/* Window and pacing rate before the call. */
	u64 cwnd;
	u64 ssthresh;
	u64 pacing_rate;
	u64 cwnd_cnt;

	/* Arguments of the call, which depend on the callback. `arg` is the next state, the event or the flags. */
	u64 arg;
	u64 acked;
	u64 rtt_us;
	u64 losses;
	u64 prior_inflight;
	u64 rs_prior_delivered;
	u64 rs_delivered;
	u64 rs_interval_us;
	u64 rs_is_app_limited;
	u64 rs_is_ack_delayed;

	/* State after the call. `result` is the return value of the callback; at BBR's start, that of sndbuf_expand. */
	u64 result;
	u64 min_tso_segs;
	u64 app_limited_after;
	u64 cwnd_after;
	u64 ssthresh_after;
	u64 pacing_rate_after;
	u64 cwnd_cnt_after;
	u64 priv[LOCKSTEP_PRIV_WORDS];
};

#endif
