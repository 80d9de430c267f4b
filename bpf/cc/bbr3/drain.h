/* SPDX-License-Identifier: GPL-2.0-only */
/* DRAIN: drains the queue that STARTUP has built (section "Drain"). */
#ifndef THALWEG_BBR3_DRAIN_H
#define THALWEG_BBR3_DRAIN_H

/* draft: CheckStartupDone, EnterDrain, CheckDrainDone */
BBR3_INLINE void bbr3_check_drain(struct bbr3 *it, struct bbr3_ack *ack)
{
	uint32_t full;

	if (it->state == BBR3_STARTUP && it->is_full_bw_reached) {
		it->state = BBR3_DRAIN;
		/* BBR does not use this value; `ss` shows it. */
		ack->ssthresh = bbr3_inflight(it, bbr3_max_bw(it));
		bbr3_reset_congestion_signals(it);
	}
	if (it->state != BBR3_DRAIN)
		return;
	full = bbr3_inflight(it, bbr3_max_bw(it));
	if (bbr3_inflight_at_departure(it, ack, ack->inflight) <= full)
		bbr3_start_down(it, ack);
}

#endif
