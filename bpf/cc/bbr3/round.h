/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Round trips, counted in packets (section "BBR.round_count: Tracking Packet-Timed Round Trips").
 */
#ifndef THALWEG_BBR3_ROUND_H
#define THALWEG_BBR3_ROUND_H

/* Maximum of the counter of rounds since a bandwidth probe. */
#define BBR3_MAX_ROUNDS 255

/* Starts a round, which lasts until a packet sent from now on is acknowledged (draft: StartRound). */
BBR3_INLINE void bbr3_start_round(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->next_round_delivered = ack->delivered;
}

BBR3_INLINE void bbr3_update_round(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->is_round_start = 0;
	if (!ack->interval_us || bbr3_is_before(ack->prior_delivered, it->next_round_delivered))
		return;
	bbr3_start_round(it, ack);
	it->is_round_start = 1;
	if (it->rounds_since_probe < BBR3_MAX_ROUNDS)
		it->rounds_since_probe++;
}

#endif
