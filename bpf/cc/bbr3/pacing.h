/* SPDX-License-Identifier: GPL-2.0-only */
/* The pacing rate (section "Pacing Rate: C.pacing_rate"). */
#ifndef THALWEG_BBR3_PACING_H
#define THALWEG_BBR3_PACING_H

/* STARTUP: 4 ln 2, rounded up. DRAIN: the gain that drains the queue of STARTUP in a round trip. */
#define BBR3_STARTUP_GAIN (BBR3_UNIT * 277 / 100 + 1)
#define BBR3_DRAIN_GAIN (BBR3_UNIT * 1000 / 2885)
#define BBR3_UP_GAIN (BBR3_UNIT * 5 / 4)
#define BBR3_DOWN_GAIN (BBR3_UNIT * 91 / 100)

/* RTT that is assumed before the first sample. */
#define BBR3_NOMINAL_RTT_US 1000

BBR3_INLINE uint32_t bbr3_pacing_gain(const struct bbr3 *it)
{
	switch (it->state) {
	case BBR3_STARTUP:
		return BBR3_STARTUP_GAIN;
	case BBR3_DRAIN:
		return BBR3_DRAIN_GAIN;
	case BBR3_PROBE_BW_UP:
		return BBR3_UP_GAIN;
	case BBR3_PROBE_BW_DOWN:
		return BBR3_DOWN_GAIN;
	default:
		return BBR3_UNIT;
	}
}

BBR3_INLINE uint64_t bbr3_capped_rate(const struct bbr3_ack *ack, uint32_t bw, uint32_t gain)
{
	uint64_t rate = bbr3_pacing_rate(bw, ack->mss, gain);

	return rate < ack->max_pacing_rate ? rate : ack->max_pacing_rate;
}

/*
 * Sets the rate before the first delivery rate: a window per RTT, times the gain of STARTUP (draft: InitPacingRate).
 */
BBR3_RARE void bbr3_init_pacing_rate(struct bbr3 *it, struct bbr3_ack *ack)
{
	uint32_t rtt_us = ack->srtt_us ? ack->srtt_us : BBR3_NOMINAL_RTT_US;

	it->has_rtt |= ack->srtt_us != 0;
	ack->pacing_rate = bbr3_capped_rate(
		ack, bbr3_saturate(((uint64_t)ack->cwnd << BBR3_BW_SHIFT) / rtt_us), BBR3_STARTUP_GAIN);
}

/* Sets the rate; until the pipe is full, only the first RTT may lower it (draft: SetPacingRateWithGain). */
BBR3_INLINE void bbr3_set_pacing_rate(struct bbr3 *it, struct bbr3_ack *ack, uint32_t gain)
{
	uint64_t rate = bbr3_capped_rate(ack, bbr3_bw(it), gain);

	if (!it->has_rtt && ack->srtt_us)
		bbr3_init_pacing_rate(it, ack);
	if (it->is_full_bw_reached || rate > ack->pacing_rate)
		ack->pacing_rate = rate;
}

#endif
