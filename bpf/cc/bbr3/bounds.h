/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Short-term bounds on bandwidth and on data in flight, which losses outside of bandwidth probes reduce until the
 * next probe (section "When not Probing for Bandwidth"). ECN marks reduce only the latter.
 */
#ifndef THALWEG_BBR3_BOUNDS_H
#define THALWEG_BBR3_BOUNDS_H

/* draft: ResetShortTermModel */
BBR3_INLINE void bbr3_reset_shortterm(struct bbr3 *it)
{
	it->bw_shortterm = BBR3_INFINITE;
	it->inflight_shortterm = BBR3_INFINITE;
}

/* draft: ResetCongestionSignals */
BBR3_INLINE void bbr3_reset_congestion_signals(struct bbr3 *it)
{
	it->is_loss_in_round = 0;
	it->is_ecn_in_round = 0;
	it->has_loss_in_cycle = 0;
	it->has_ecn_in_cycle = 0;
	it->bw_latest = 0;
	it->inflight_latest = 0;
}

/*
 * Called near the start of an ACK. Rounds for counting losses are separate: the first loss in one starts a new one
 * (draft: UpdateLatestDeliverySignals).
 */
BBR3_INLINE void bbr3_update_latest_delivery(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->is_loss_round_start = 0;
	if (!ack->interval_us || !ack->acked)
		return;
	it->bw_latest = bbr3_max(it->bw_latest, ack->bw);
	it->inflight_latest = bbr3_max(it->inflight_latest, ack->sample_delivered);
	if (!bbr3_is_before(ack->prior_delivered, it->loss_round_delivered)) {
		it->loss_round_delivered = ack->delivered;
		it->is_loss_round_start = 1;
	}
}

/* Called at the end of an ACK (draft: AdvanceLatestDeliverySignals). */
BBR3_INLINE void bbr3_advance_latest_delivery(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (!it->is_loss_round_start)
		return;
	it->bw_latest = ack->bw;
	it->inflight_latest = ack->sample_delivered;
}

/* Reduces the bounds after losses, but not below the latest delivery (draft: InitLowerBounds, LossLowerBounds). */
BBR3_RARE void bbr3_cut_shortterm(struct bbr3 *it)
{
	if (it->bw_shortterm == BBR3_INFINITE)
		it->bw_shortterm = bbr3_max_bw(it);
	it->bw_shortterm = bbr3_max(bbr3_max(it->bw_latest, bbr3_scale(it->bw_shortterm, BBR3_BETA)), 1);
	it->inflight_shortterm = bbr3_max(it->inflight_latest, bbr3_scale(it->inflight_shortterm, BBR3_BETA));
}

/* Called once per round (draft: AdaptLowerBoundsFromCongestion). */
BBR3_INLINE void bbr3_adapt_shortterm(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t ecn_bound = BBR3_INFINITE;

	if (bbr3_is_probing_bw(it) || !(it->is_loss_in_round || it->is_ecn_in_round))
		return;
	if (it->inflight_shortterm == BBR3_INFINITE)
		it->inflight_shortterm = ack->cwnd;
	if (it->is_ecn_in_round)
		ecn_bound = bbr3_ecn_bound(it);
	if (it->is_loss_in_round)
		bbr3_cut_shortterm(it);
	it->inflight_shortterm = bbr3_min(it->inflight_shortterm, ecn_bound);
}

/* draft: UpdateCongestionSignals */
BBR3_INLINE void bbr3_update_congestion_signals(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (!ack->interval_us || !ack->acked)
		return;
	bbr3_update_max_bw(it, ack->bw, ack->is_app_limited);
	it->is_loss_in_round |= ack->losses != 0;
	if (!it->is_loss_round_start)
		return;
	bbr3_adapt_shortterm(it, ack);
	it->is_loss_in_round = 0;
	it->is_ecn_in_round = 0;
}

#endif
