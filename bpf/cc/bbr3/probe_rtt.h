/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * min_rtt, and PROBE_RTT, which empties the path so that min_rtt can be measured (section "ProbeRTT"). There are two
 * filters, as in Linux: PROBE_RTT starts if no smaller RTT has been measured for 5 s, and min_rtt is the minimum of
 * 10 s.
 */
#ifndef THALWEG_BBR3_PROBE_RTT_H
#define THALWEG_BBR3_PROBE_RTT_H

#define BBR3_MIN_RTT_US 10000000
#define BBR3_PROBE_RTT_INTERVAL_US 5000000
#define BBR3_PROBE_RTT_DURATION_US 200000

BBR3_INLINE uint32_t bbr3_has_passed(uint64_t now_us, uint64_t since_us, uint32_t interval_us)
{
	return (int64_t)(now_us - since_us) > (int64_t)interval_us;
}

/* Returns to PROBE_BW, or to STARTUP if the pipe was never full (section "Exiting ProbeRTT"). */
BBR3_RARE void bbr3_exit_probe_rtt(struct bbr3 *it, const struct bbr3_ack *ack)
{
	bbr3_reset_shortterm(it);
	if (it->is_full_bw_reached) {
		bbr3_start_down(it, ack);
		bbr3_start_cruise(it);
	} else {
		it->state = BBR3_STARTUP;
	}
}

/* draft: CheckProbeRTTDone */
BBR3_INLINE void bbr3_check_probe_rtt_done(struct bbr3 *it, struct bbr3_ack *ack)
{
	if (!it->probe_rtt_done_us || ack->now_us <= it->probe_rtt_done_us)
		return;
	it->probe_rtt_min_at_us = ack->now_us;
	bbr3_restore_cwnd(it, ack);
	bbr3_exit_probe_rtt(it, ack);
}

/* draft: HandleProbeRTT */
BBR3_RARE void bbr3_handle_probe_rtt(struct bbr3 *it, struct bbr3_ack *ack)
{
	bbr3_mark_limited(it, ack);
	if (!it->probe_rtt_done_us) {
		if (ack->inflight > bbr3_probe_rtt_cwnd(it))
			return;
		it->probe_rtt_done_us = ack->now_us + BBR3_PROBE_RTT_DURATION_US;
		it->is_probe_rtt_round_done = 0;
		bbr3_start_round(it, ack);
		return;
	}
	it->is_probe_rtt_round_done |= it->is_round_start;
	if (it->is_probe_rtt_round_done)
		bbr3_check_probe_rtt_done(it, ack);
}

/* draft: EnterProbeRTT */
BBR3_RARE void bbr3_enter_probe_rtt(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->state = BBR3_PROBE_RTT;
	bbr3_save_cwnd(it, ack);
	it->probe_rtt_done_us = 0;
	it->ack_phase = BBR3_ACKS_PROBE_STOPPING;
	bbr3_start_round(it, ack);
}

/* draft: UpdateMinRTT. Enters PROBE_RTT when it is due. */
BBR3_INLINE void bbr3_update_min_rtt(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t is_due = bbr3_has_passed(ack->now_us, it->probe_rtt_min_at_us, BBR3_PROBE_RTT_INTERVAL_US);

	if (ack->rtt_us != BBR3_INFINITE &&
	    (ack->rtt_us < it->probe_rtt_min_us || (is_due && !ack->is_ack_delayed))) {
		it->probe_rtt_min_us = ack->rtt_us;
		it->probe_rtt_min_at_us = ack->now_us;
	}
	if (it->probe_rtt_min_us <= it->min_rtt_us ||
	    bbr3_has_passed(ack->now_us, it->min_rtt_at_us, BBR3_MIN_RTT_US)) {
		it->min_rtt_us = it->probe_rtt_min_us;
		it->min_rtt_at_us = it->probe_rtt_min_at_us;
	}
	if (is_due && !it->is_idle_restart && it->state != BBR3_PROBE_RTT)
		bbr3_enter_probe_rtt(it, ack);
}

/* draft: CheckProbeRTT */
BBR3_INLINE void bbr3_check_probe_rtt(struct bbr3 *it, struct bbr3_ack *ack)
{
	if (it->state == BBR3_PROBE_RTT)
		bbr3_handle_probe_rtt(it, ack);
	if (ack->sample_delivered)
		it->is_idle_restart = 0;
}

#endif
