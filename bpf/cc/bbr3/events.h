/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of a connection other than ACKs. */
#ifndef THALWEG_BBR3_EVENTS_H
#define THALWEG_BBR3_EVENTS_H

/* Called when a connection starts to use the algorithm; `*it` is zero. `random` seeds its waits (draft: OnInit). */
BBR3_INLINE void bbr3_on_init(struct bbr3 *it, struct bbr3_ack *ack, uint32_t min_rtt_us, uint32_t prior_cwnd,
			      uint32_t random)
{
	it->random = random;
	it->init_cwnd = bbr3_min(ack->cwnd, 127);
	it->prior_cwnd = prior_cwnd;
	it->next_round_delivered = ack->delivered;
	it->loss_round_delivered = ack->delivered + 1;
	it->lost_seen = ack->lost;
	it->ecn_alpha = BBR3_UNIT;
	it->ce_seen = ack->delivered_ce;
	it->alpha_delivered = ack->delivered;
	it->alpha_delivered_ce = ack->delivered_ce;
	it->min_rtt_us = min_rtt_us;
	it->min_rtt_at_us = ack->now_us;
	it->probe_rtt_min_us = min_rtt_us;
	it->probe_rtt_min_at_us = ack->now_us;
	it->extra_acked_since_us = ack->now_us;
	it->inflight_longterm = BBR3_INFINITE;
	it->up_acked_per_increment = BBR3_INFINITE;
	bbr3_reset_shortterm(it);
	bbr3_init_pacing_rate(it, ack);
	bbr3_measure_burst(it, ack);
}

/* Called when the connection sends again after an idle time (section "Restarting From Idle"). */
BBR3_INLINE void bbr3_on_restart(struct bbr3 *it, struct bbr3_ack *ack)
{
	it->is_idle_restart = 1;
	it->extra_acked_since_us = ack->now_us;
	it->extra_acked_delivered = 0;
	if (bbr3_is_in_probe_bw(it))
		bbr3_set_pacing_rate(it, ack, BBR3_UNIT);
	else if (it->state == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(it, ack);
}

/*
 * Called when loss recovery begins, or when TCP reduces the window for an ECN mark or a full local queue (draft:
 * SaveStateUponLoss).
 */
BBR3_INLINE void bbr3_on_recovery(struct bbr3 *it, const struct bbr3_ack *ack)
{
	bbr3_save_cwnd(it, ack);
	it->undo_bw_shortterm = it->bw_shortterm;
	it->undo_inflight_shortterm = it->inflight_shortterm;
	it->undo_inflight_longterm = it->inflight_longterm;
}

/* Called after a spurious loss (section "Handling a Spurious Loss Recovery"). Returns the window. */
BBR3_INLINE uint32_t bbr3_on_undo(struct bbr3 *it)
{
	bbr3_reset_full_bw(it, 0);
	it->is_loss_in_round = 0;
	it->bw_shortterm = bbr3_max(it->bw_shortterm, it->undo_bw_shortterm);
	it->inflight_shortterm = bbr3_max(it->inflight_shortterm, it->undo_inflight_shortterm);
	it->inflight_longterm = bbr3_max(it->inflight_longterm, it->undo_inflight_longterm);
	return it->prior_cwnd;
}

/*
 * Called when the state of loss recovery changes. Handles a retransmission timeout, and the end of the recovery that it
 * started (section "Modulating cwnd in Loss Recovery").
 */
BBR3_INLINE void bbr3_on_ca_state(struct bbr3 *it, struct bbr3_ack *ack, uint32_t ca_state)
{
	if (ca_state == BBR3_CA_LOSS) {
		uint32_t cwnd = ack->cwnd;

		/* The window is already reduced, so bounds are based on the earlier one. */
		ack->cwnd = bbr3_max(cwnd, it->prior_cwnd);
		bbr3_note_losses(it, ack);
		it->prior_ca_state = BBR3_CA_LOSS;
		bbr3_reset_full_bw(it, 0);
		if (!bbr3_is_probing_bw(it) && it->inflight_shortterm == BBR3_INFINITE)
			it->inflight_shortterm = ack->cwnd;
		ack->cwnd = cwnd;
	} else if (it->prior_ca_state == BBR3_CA_LOSS) {
		bbr3_restore_cwnd(it, ack);
	}
}

#endif
