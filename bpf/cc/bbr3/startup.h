/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of STARTUP by losses (section "Exiting Startup Based on Packet Loss"). Included by bbr3.h. */
#ifndef THALWEG_BBR3_STARTUP_H
#define THALWEG_BBR3_STARTUP_H

/*
 * ACKs with losses in a round trip that end STARTUP (draft: StartupFullLossCnt). The count stops at the second number.
 */
#define BBR3_STARTUP_LOSS_EVENTS 6
#define BBR3_STARTUP_LOSS_EVENTS_MAX 15

/* draft: CheckStartupHighLoss */
BBR3_INLINE void bbr3_check_startup_loss(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->is_full_bw_reached)
		return;
	if (ack->losses && it->loss_events_in_round < BBR3_STARTUP_LOSS_EVENTS_MAX)
		it->loss_events_in_round++;
	if (!it->is_loss_round_start)
		return;
	if (ack->ca_state == BBR3_CA_RECOVERY && it->loss_events_in_round >= BBR3_STARTUP_LOSS_EVENTS &&
	    bbr3_is_loss_too_high(ack->lost - ack->tx_lost, ack->tx_in_flight)) {
		it->is_full_bw_reached = 1;
		it->inflight_longterm = bbr3_max(bbr3_inflight(it, ack, bbr3_max_bw(it)), it->inflight_latest);
		return;
	}
	it->loss_events_in_round = 0;
}

#endif
