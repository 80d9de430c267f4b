/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PROBE_BW: DOWN drains, CRUISE leaves headroom, REFILL fills the pipe, UP probes for more (sections "ProbeBW" and
 * "ProbeBW Algorithm Details"). inflight_longterm is the number of packets in flight that the path supports,
 * according to probes.
 */
#ifndef THALWEG_BBR3_PROBE_BW_H
#define THALWEG_BBR3_PROBE_BW_H

/* draft: PickProbeWait */
BBR3_INLINE void bbr3_pick_probe_wait(struct bbr3 *it)
{
	it->random = bbr3_random(it->random);
	it->rounds_since_probe = bbr3_random_below(it->random, BBR3_PROBE_WAIT_RANDOM_ROUNDS);
	it->random = bbr3_random(it->random);
	it->probe_wait_us = bbr3_probe_wait_us(it->random);
}

/* draft: StartProbeBW_DOWN */
BBR3_RARE void bbr3_start_down(struct bbr3 *it, const struct bbr3_ack *ack)
{
	bbr3_reset_congestion_signals(it);
	it->up_acked_per_increment = BBR3_INFINITE;
	bbr3_pick_probe_wait(it);
	it->cycle_us = ack->now_us;
	it->ack_phase = BBR3_ACKS_PROBE_STOPPING;
	bbr3_start_round(it, ack);
	it->state = BBR3_PROBE_BW_DOWN;
}

/* draft: StartProbeBW_CRUISE */
BBR3_INLINE void bbr3_start_cruise(struct bbr3 *it)
{
	if (it->inflight_shortterm != BBR3_INFINITE)
		it->inflight_shortterm = bbr3_min(it->inflight_shortterm, it->inflight_longterm);
	it->state = BBR3_PROBE_BW_CRUISE;
}

/* draft: StartProbeBW_REFILL */
BBR3_RARE void bbr3_start_refill(struct bbr3 *it, const struct bbr3_ack *ack, uint32_t up_rounds)
{
	bbr3_reset_shortterm(it);
	it->up_rounds = up_rounds;
	it->up_acked = 0;
	it->was_probe_precautionary = 0;
	it->ack_phase = BBR3_ACKS_REFILLING;
	bbr3_start_round(it, ack);
	it->state = BBR3_PROBE_BW_REFILL;
}

/* draft: RaiseInflightLongtermSlope */
BBR3_INLINE void bbr3_raise_slope(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->up_acked_per_increment = bbr3_acked_per_increment(ack->cwnd, it->up_rounds);
	if (it->up_rounds < BBR3_MAX_UP_ROUNDS)
		it->up_rounds++;
}

/* draft: StartProbeBW_UP */
BBR3_RARE void bbr3_start_up(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->is_probe_sample = 1;
	it->ack_phase = BBR3_ACKS_PROBE_STARTING;
	bbr3_start_round(it, ack);
	it->cycle_us = ack->now_us;
	bbr3_reset_full_bw(it, ack->bw);
	it->state = BBR3_PROBE_BW_UP;
	bbr3_raise_slope(it, ack);
}

/* Returns whether inflight_longterm limits the flow. */
BBR3_INLINE uint32_t bbr3_is_held_by_longterm(const struct bbr3 *it, const struct bbr3_ack *ack)
{
	return ack->is_cwnd_limited && ack->cwnd >= it->inflight_longterm;
}

/* draft: ProbeInflightLongtermUpward */
BBR3_RARE void bbr3_raise_longterm(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (!bbr3_is_held_by_longterm(it, ack))
		return;
	it->up_acked += ack->acked;
	if (it->up_acked >= it->up_acked_per_increment) {
		uint32_t increment = it->up_acked / it->up_acked_per_increment;

		it->up_acked -= increment * it->up_acked_per_increment;
		it->inflight_longterm = bbr3_saturate((uint64_t)it->inflight_longterm + increment);
	}
	if (it->is_round_start)
		bbr3_raise_slope(it, ack);
}

/*
 * Called at most once per probe, when the probe has caused too much loss or too many ECN marks: ends the probe. Unless
 * app-limited, sets inflight_longterm to `inflight`, the number of packets in flight that the path supports, but to no
 * less than 0.7 times the target (draft: HandleInflightTooHigh).
 */
BBR3_RARE void bbr3_handle_too_high(struct bbr3 *it, const struct bbr3_ack *ack, uint32_t inflight,
				      uint32_t is_app_limited)
{
	it->was_probe_too_high = 1;
	it->is_probe_sample = 0;
	if (!is_app_limited)
		it->inflight_longterm = bbr3_max(inflight, bbr3_scale(bbr3_target_inflight(it, ack), BBR3_BETA));
	if (it->state == BBR3_PROBE_BW_UP)
		bbr3_start_down(it, ack);
}

/*
 * Called one round after a probe, when its last samples have arrived. Returns whether the next probe begins
 * immediately.
 */
BBR3_RARE uint32_t bbr3_end_probe_samples(struct bbr3 *it, const struct bbr3_ack *ack)
{
	it->is_probe_sample = 0;
	it->ack_phase = BBR3_ACKS_INIT;
	if (!bbr3_is_in_probe_bw(it))
		return 0;
	if (!ack->is_app_limited)
		bbr3_advance_max_bw(it);
	if (!it->was_probe_precautionary || it->was_probe_too_high)
		return 0;
	bbr3_start_refill(it, ack, 0);
	return 1;
}

/* draft: AdaptLongTermModel. Returns whether PROBE_BW_REFILL has begun. */
BBR3_INLINE uint32_t bbr3_adapt_longterm(struct bbr3 *it, const struct bbr3_ack *ack)
{
	if (it->is_round_start) {
		if (it->ack_phase == BBR3_ACKS_PROBE_STARTING)
			it->ack_phase = BBR3_ACKS_PROBE_FEEDBACK;
		else if (it->ack_phase == BBR3_ACKS_PROBE_STOPPING && bbr3_end_probe_samples(it, ack))
			return 1;
	}
	if (bbr3_is_too_high(it, ack)) {
		if (it->is_probe_sample)
			bbr3_handle_too_high(it, ack, ack->tx_in_flight, ack->is_app_limited);
		return 0;
	}
	if (it->inflight_longterm == BBR3_INFINITE)
		return 0;
	it->inflight_longterm = bbr3_max(it->inflight_longterm, ack->tx_in_flight);
	if (it->state == BBR3_PROBE_BW_UP)
		bbr3_raise_longterm(it, ack);
	return 0;
}

/*
 * Returns how many of `inflight` packets will be in the network when pacing permits the next packet: some wait in the
 * sender's own queue. With a gain above 1, the burst that leaves then is added.
 */
BBR3_INLINE uint32_t bbr3_inflight_at_departure(const struct bbr3 *it, const struct bbr3_ack *ack, uint32_t inflight)
{
	uint32_t delivered = bbr3_delivered_in(bbr3_bw(it), ack->pacing_delay_us);

	if (bbr3_pacing_gain(it) > BBR3_UNIT)
		inflight += it->burst;
	return inflight > delivered ? inflight - delivered : 0;
}

/* draft: IsTimeToProbeBW */
BBR3_INLINE uint32_t bbr3_is_time_to_probe(const struct bbr3 *it, const struct bbr3_ack *ack)
{
	return (int64_t)(ack->now_us - it->cycle_us) > (int64_t)it->probe_wait_us ||
	       it->rounds_since_probe >= bbr3_probe_rounds(bbr3_target_inflight(it, ack));
}

/* draft: IsTimeToGoDown */
BBR3_INLINE uint32_t bbr3_is_time_to_go_down(struct bbr3 *it, const struct bbr3_ack *ack, uint32_t inflight)
{
	if (it->was_probe_too_high && inflight >= it->inflight_longterm) {
		it->was_probe_precautionary = 1;
		return 1;
	}
	if (bbr3_is_held_by_longterm(it, ack)) {
		bbr3_reset_full_bw(it, ack->bw);
		return 0;
	}
	return it->is_full_bw_now;
}

/* draft: UpdateProbeBWCyclePhase */
BBR3_INLINE void bbr3_update_probe_bw(struct bbr3 *it, const struct bbr3_ack *ack)
{
	uint32_t inflight;

	if (!it->is_full_bw_reached || bbr3_adapt_longterm(it, ack) || !bbr3_is_in_probe_bw(it))
		return;
	inflight = bbr3_inflight_at_departure(it, ack, ack->prior_inflight);
	switch (it->state) {
	case BBR3_PROBE_BW_DOWN:
	case BBR3_PROBE_BW_CRUISE:
		if (bbr3_is_time_to_reprobe(it, ack))
			bbr3_start_refill(it, ack, bbr3_reprobe_rounds(it));
		else if (bbr3_is_time_to_probe(it, ack))
			bbr3_start_refill(it, ack, 0);
		else if (it->state == BBR3_PROBE_BW_DOWN && inflight <= bbr3_with_headroom(it->inflight_longterm) &&
			 inflight <= bbr3_inflight(it, bbr3_max_bw(it)))
			bbr3_start_cruise(it);
		break;
	case BBR3_PROBE_BW_REFILL:
		if (it->is_round_start)
			bbr3_start_up(it, ack);
		break;
	case BBR3_PROBE_BW_UP:
		if (bbr3_is_time_to_go_down(it, ack, inflight)) {
			it->was_probe_too_high = 0;
			bbr3_start_down(it, ack);
		}
		break;
	}
}

#endif
