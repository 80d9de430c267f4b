/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of STARTUP because of congestion. */
#ifndef THALWEG_BBR3_STARTUP_H
#define THALWEG_BBR3_STARTUP_H

/*
 * Called if losses or marks end STARTUP: the pipe counts as full, and the packets in flight are bounded (draft:
 * CheckStartupHighLoss).
 */
BBR3_RARE void bbr3_end_startup(struct bbr3 *it)
{
	it->is_full_bw_reached = 1;
	it->inflight_longterm = bbr3_max(bbr3_inflight(it, bbr3_max_bw(it)), it->inflight_latest);
}

#endif
