/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bandwidth: the largest delivery rate of this and the previous cycle of PROBE_BW (section "BBR.max_bw Max Filter"),
 * limited by the short-term bound after recent losses.
 */
#ifndef THALWEG_BBR3_BANDWIDTH_H
#define THALWEG_BBR3_BANDWIDTH_H

BBR3_INLINE uint32_t bbr3_max_bw(const struct bbr3 *it)
{
	return bbr3_max(it->max_bw[0], it->max_bw[1]);
}

/* Returns the bandwidth that the flow uses (draft: BoundBWForModel). */
BBR3_INLINE uint32_t bbr3_bw(const struct bbr3 *it)
{
	return bbr3_min(bbr3_max_bw(it), it->bw_shortterm);
}

/* Adds a sample; an app-limited one is used only if it is not below the maximum (draft: UpdateMaxBw). */
BBR3_INLINE void bbr3_update_max_bw(struct bbr3 *it, uint32_t bw, uint32_t is_app_limited)
{
	if (!is_app_limited || bw >= bbr3_max_bw(it))
		it->max_bw[1] = bbr3_max(it->max_bw[1], bw);
}

/* Called when a cycle ends. A cycle without samples is ignored (draft: AdvanceMaxBwFilter). */
BBR3_INLINE void bbr3_advance_max_bw(struct bbr3 *it)
{
	if (!it->max_bw[1])
		return;
	it->max_bw[0] = it->max_bw[1];
	it->max_bw[1] = 0;
}

#endif
