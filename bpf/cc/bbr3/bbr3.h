/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BBR version 3, after draft-ietf-ccwg-bbr (revision 007dbe1 of the working group's repository). Function and section
 * names in comments are the draft's. Where the draft and Linux's version 3 differ, this follows Linux:
 *
 *                       here                                       draft
 *   DRAIN               gain 0.344                                 gain 0.5, at most three round trips
 *   PROBE_BW_DOWN       gain 0.906                                 gain 0.90
 *   full pipe           growth counts at each ACK                  growth counts once per round trip
 *   undo                restores bounds and window                 restores the state as well
 *   start of CRUISE     inflight_shortterm <= inflight_longterm    no such bound
 *
 *          STARTUP ---> DRAIN ---> PROBE_BW: DOWN ---> CRUISE ---> REFILL ---> UP ---> DOWN ...
 *              ^                      ^
 *              +----- PROBE_RTT ------+     from any state, 5 s after the last RTT minimum
 *
 * Plain integer C without the kernel's types and helpers, so that tests compile it as an ordinary program.
 */
#ifndef THALWEG_BBR3_H
#define THALWEG_BBR3_H

#include "fixed_point.h"

enum bbr3_state {
	BBR3_STARTUP,
	BBR3_DRAIN,
	BBR3_PROBE_BW_DOWN,
	BBR3_PROBE_BW_CRUISE,
	BBR3_PROBE_BW_REFILL,
	BBR3_PROBE_BW_UP,
	BBR3_PROBE_RTT,
};

/* Position of the acknowledged packets relative to the last bandwidth probe. */
enum bbr3_ack_phase {
	BBR3_ACKS_INIT,            /* no probe yet, or all packets of the last one are acknowledged */
	BBR3_ACKS_REFILLING,       /* the pipe is being filled */
	BBR3_ACKS_PROBE_STARTING,  /* a probe has started; the acknowledged packets were sent before it */
	BBR3_ACKS_PROBE_FEEDBACK,  /* the acknowledged packets were sent in the probe */
	BBR3_ACKS_PROBE_STOPPING,  /* the probe has ended; its last packets are being acknowledged */
};

/* States of Linux's loss recovery that are used here. */
enum { BBR3_CA_OPEN, BBR3_CA_RECOVERY = 3, BBR3_CA_LOSS = 4 };

/*
 * The model of the path and the state machine of a connection. Members that every ACK needs come first, so that an
 * ACK accesses few cache lines.
 */
struct bbr3 {
	uint8_t state;
	uint8_t ack_phase;
	uint8_t prior_ca_state;
	uint8_t full_bw_count;
	uint8_t rounds_since_probe;
	uint8_t loss_events_in_round;
	uint8_t extra_acked_rounds;
	uint8_t extra_acked_slot;
	uint8_t is_round_start;
	uint8_t is_loss_round_start;
	uint8_t is_loss_in_round;
	uint8_t is_full_bw_now;
	uint8_t is_full_bw_reached;
	uint8_t is_probe_sample;         /* whether samples come from a bandwidth probe */
	uint8_t was_probe_too_high;      /* whether the last probe caused too much loss or too many marks */
	uint8_t was_probe_precautionary; /* whether the last probe ended at inflight_longterm, as a precaution */
	uint8_t is_probe_rtt_round_done;
	uint8_t is_idle_restart;
	uint8_t has_rtt;
	uint8_t has_marked;
	uint8_t is_ecn_eligible;
	uint8_t is_ecn_in_round;
	uint8_t has_ecn_in_cycle;
	uint8_t has_loss_in_cycle;

	uint32_t next_round_delivered; /* the round ends when a packet that was sent after this count is acknowledged */
	uint32_t loss_round_delivered; /* the same for the round over which losses are counted */
	uint32_t lost_seen;            /* losses that were handled */
	uint32_t ce_seen;              /* ECN marks that were counted */
	uint32_t max_bw[2];            /* largest delivery rate of the previous cycle, and of this one */
	uint32_t bw_latest;            /* largest delivery rate of the latest round trip */
	uint32_t bw_shortterm;
	uint32_t full_bw; /* baseline that the delivery rate has to exceed by 25 % */
	uint32_t inflight_latest; /* largest amount of data delivered in the latest round trip */
	uint32_t inflight_shortterm;
	uint32_t inflight_longterm;
	uint32_t min_rtt_us;       /* over 10 s */
	uint32_t probe_rtt_min_us; /* over 5 s */
	uint32_t extra_acked[2];   /* maxima of two windows of round trips */
	uint32_t extra_acked_delivered;
	uint32_t probe_wait_us;
	uint32_t burst;            /* segments in a burst, computed by bbr3_measure_burst() */
	uint32_t burst_min_rtt_us; /* min_rtt for which it was computed */
	uint64_t burst_rate;
	uint64_t cycle_us;             /* start of PROBE_BW_DOWN or PROBE_BW_UP */
	uint64_t min_rtt_at_us;        /* time at which min_rtt was measured or confirmed */
	uint64_t probe_rtt_min_at_us;  /* time of probe_rtt_min, or end of PROBE_RTT */
	uint64_t extra_acked_since_us; /* start of the interval over which extra_acked is counted */

	uint64_t probe_rtt_done_us; /* earliest end of PROBE_RTT; 0: too much is still in flight */
	uint32_t up_acked;               /* acknowledged packets that have not yet raised inflight_longterm */
	uint32_t up_acked_per_increment; /* packets acknowledged per packet of its growth */
	uint32_t marked_from;            /* packets sent between these two counts of delivered ones are marked */
	uint32_t marked_until;
	uint32_t alpha_delivered; /* packets and marks at the last update of ecn_alpha */
	uint32_t alpha_delivered_ce;
	uint32_t random;
	uint32_t init_cwnd;
	uint32_t prior_cwnd; /* last valid cwnd before loss recovery or PROBE_RTT */
	uint32_t undo_bw_shortterm;
	uint32_t undo_inflight_shortterm;
	uint32_t undo_inflight_longterm;
	uint16_t ecn_alpha; /* average share of marked packets, in units of 1/256 */
	uint8_t ecn_rounds; /* consecutive rounds of STARTUP with too many marks */
	uint8_t up_rounds;
};

/* State of the connection at an ACK or another event. The last members are outputs. */
struct bbr3_ack {
	uint64_t now_us;
	uint64_t delivered_us;     /* time of the last delivery */
	uint64_t pacing_delay_us;  /* time until pacing allows the next packet */
	uint64_t max_pacing_rate;  /* bytes per second */
	uint32_t pacing_shift;
	uint32_t mss;
	uint32_t srtt_us;          /* 0 if unknown */
	uint32_t inflight;         /* packets */
	uint32_t delivered;        /* packets delivered since the start */
	uint32_t lost;             /* packets lost since the start */
	uint32_t cwnd_clamp;
	uint32_t ca_state;
	uint32_t is_cwnd_limited;
	uint32_t has_ecn;          /* whether both ends negotiated ECN */
	uint32_t delivered_ce;     /* packets marked since the start */

	/* Rate sample. */
	uint64_t interval_us; /* 0 without a sample */
	uint32_t sample_delivered;
	uint32_t sample_ce; /* marked packets in the sample */
	uint32_t prior_delivered;
	uint32_t prior_inflight;
	uint32_t acked;        /* packets that this ACK acknowledges, selectively or not */
	uint32_t losses;       /* packets that this ACK shows as lost */
	uint32_t rtt_us;       /* BBR3_INFINITE without a sample */
	uint32_t is_app_limited;
	uint32_t is_ack_delayed;
	uint32_t bw;           /* delivery rate, computed by bbr3_on_ack() */

	/*
	 * State at the transmission of the most recently sent packet that this ACK acknowledges, from inflight_ring.h.
	 */
	uint32_t tx_in_flight; /* packets in flight including this one; 0 if unknown */
	uint32_t tx_lost;      /* packets lost before its transmission */
	uint32_t tx_is_app_limited;

	/* Results; the first two are inputs as well. */
	uint64_t pacing_rate;
	uint32_t cwnd;
	uint32_t ssthresh; /* 0: unchanged */
	uint32_t unbounded_cwnd; /* cwnd without the bounds of the model */
};

/* Returns whether `left` precedes `right`, for counters that wrap around. */
BBR3_INLINE uint32_t bbr3_is_before(uint32_t left, uint32_t right)
{
	return (int32_t)(left - right) < 0;
}

BBR3_INLINE uint32_t bbr3_is_in_probe_bw(const struct bbr3 *it)
{
	return it->state >= BBR3_PROBE_BW_DOWN && it->state <= BBR3_PROBE_BW_UP;
}

/* Returns whether the flow probes for more bandwidth (draft: IsProbingBW). */
BBR3_INLINE uint32_t bbr3_is_probing_bw(const struct bbr3 *it)
{
	return it->state == BBR3_STARTUP || it->state == BBR3_PROBE_BW_REFILL || it->state == BBR3_PROBE_BW_UP;
}

#include "limited.h"
#include "round.h"
#include "bandwidth.h"
#include "window.h"
#include "pacing.h"
#include "aggregation.h"
#include "startup.h"
#include "ecn.h"
#include "bounds.h"
#include "full_pipe.h"
#include "probe_bw.h"
#include "losses.h"
#include "drain.h"
#include "probe_rtt.h"
#include "events.h"

/* Handles an ACK (section "Per-ACK Steps"). */
BBR3_INLINE void bbr3_on_ack(struct bbr3 *it, struct bbr3_ack *ack)
{
	ack->bw = bbr3_delivery_rate(ack->sample_delivered, ack->interval_us);
	bbr3_apply_marks(it, ack);
	bbr3_note_losses(it, ack);
	bbr3_update_round(it, ack);
	bbr3_update_ecn(it, ack);
	bbr3_update_latest_delivery(it, ack);
	bbr3_update_congestion_signals(it, ack);
	bbr3_update_aggregation(it, ack);
	bbr3_check_startup_loss(it, ack);
	bbr3_check_full_pipe(it, ack);
	bbr3_check_drain(it, ack);
	bbr3_update_probe_bw(it, ack);
	bbr3_update_min_rtt(it, ack);
	bbr3_check_probe_rtt(it, ack);
	bbr3_set_pacing_rate(it, ack, bbr3_pacing_gain(it));
	bbr3_measure_burst(it, ack);
	bbr3_set_cwnd(it, ack);
	bbr3_advance_latest_delivery(it, ack);
	bbr3_note_cycle(it, ack);
	it->prior_ca_state = ack->ca_state;
}

#endif
