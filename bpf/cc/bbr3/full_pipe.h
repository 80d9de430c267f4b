/* SPDX-License-Identifier: GPL-2.0-only */
/* Detects whether the pipe is full (section "Exiting Acceleration Based on Bandwidth Plateau"). */
#ifndef THALWEG_BBR3_FULL_PIPE_H
#define THALWEG_BBR3_FULL_PIPE_H

/* Number of rounds without growth: one for the receive window to grow, one to fill it, one to measure the rate. */
#define BBR3_FULL_BW_ROUNDS 3

/* Restarts with `bw` as the baseline (draft: ResetFullBW). */
BBR3_INLINE void bbr3_reset_full_bw(struct bbr3 *it, uint32_t bw)
{
	it->full_bw = bw;
	it->full_bw_count = 0;
	it->is_full_bw_now = 0;
}

/*
 * draft: CheckFullBWReached. As in Linux, growth is checked at every ACK, and its absence is counted once per round.
 */
BBR3_INLINE void bbr3_check_full_pipe(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->is_full_bw_now || ack->is_app_limited)
		return;
	if (ack->bw >= bbr3_scale(it->full_bw, BBR3_FULL_BW_GROWTH)) {
		bbr3_reset_full_bw(it, ack->bw);
		return;
	}
	if (!it->is_round_start)
		return;
	it->full_bw_count++;
	it->is_full_bw_now = it->full_bw_count >= BBR3_FULL_BW_ROUNDS;
	it->is_full_bw_reached |= it->is_full_bw_now;
}

#endif
