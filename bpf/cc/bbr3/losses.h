/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles packets that the kernel has marked as lost (section "Probing for Bandwidth In ProbeBW").
 *
 * A patched kernel calls version 3 for each lost packet and stores the packets in flight when it was sent. Here, the
 * count of lost packets shows that there are new losses, and the entry of the last acknowledged packet is used for
 * them: a loss is detected when a packet arrives that was sent shortly after the lost one.
 */
#ifndef THALWEG_BBR3_LOSSES_H
#define THALWEG_BBR3_LOSSES_H

/* draft: NoteLoss, HandleLostPacket */
BBR3_INLINE void bbr3_note_losses(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t size = ack->lost - it->lost_seen;
	uint32_t lost = ack->lost - ack->tx_lost;

	if (!size)
		return;
	it->lost_seen = ack->lost;
	if (!it->is_loss_in_round)
		it->loss_round_delivered = ack->delivered;
	it->is_loss_in_round = 1;
	it->has_loss_in_cycle = 1;
	if (it->is_probe_sample && bbr3_is_loss_too_high(lost, ack->tx_in_flight)) {
		/*
		 * The threshold was crossed within one burst, regardless of the number of losses that are detected at
		 * once.
		 */
		uint32_t inflight = bbr3_inflight_at_loss(ack->tx_in_flight, lost, bbr3_min(size, it->burst));

		bbr3_handle_too_high(it, ack, inflight, ack->tx_is_app_limited);
	}
}

/*
 * Number of ACKs with losses in a round trip that ends STARTUP (draft: StartupFullLossCnt). The count stops at the
 * second number.
 */
#define BBR3_STARTUP_LOSS_EVENTS 6
#define BBR3_STARTUP_LOSS_EVENTS_MAX 15

/* Section "Exiting Startup Based on Packet Loss" (draft: CheckStartupHighLoss). */
BBR3_INLINE void bbr3_check_startup_loss(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->is_full_bw_reached)
		return;
	if (ack->losses && it->loss_events_in_round < BBR3_STARTUP_LOSS_EVENTS_MAX)
		it->loss_events_in_round++;
	if (!it->is_loss_round_start)
		return;
	if (ack->ca_state == BBR3_CA_RECOVERY && it->loss_events_in_round >= BBR3_STARTUP_LOSS_EVENTS &&
	    bbr3_is_too_high(it, ack))
		bbr3_end_startup(it);
	else
		it->loss_events_in_round = 0;
}

#endif
