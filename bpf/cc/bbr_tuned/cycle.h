/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cycle of PROBE_BW: a phase that probes, one that drains, and phases that cruise.
 */
#ifndef THALWEG_BBR_TUNED_CYCLE_H
#define THALWEG_BBR_TUNED_CYCLE_H

/* Number of rounds over which the kernel computes the bandwidth maximum. */
#define TUNED_BW_ROUNDS 10

/* Returns a random number below `limit`, from 32 random bits. */
TUNED_FUNCTION uint64_t tuned_below(uint64_t limit, uint32_t random)
{
	return (uint64_t)random * limit >> 32;
}

TUNED_FUNCTION uint64_t tuned_spread(const struct tuned_params *params, uint64_t value)
{
	return (value * params->probe_jitter + TUNED_UNIT / 2) / TUNED_UNIT;
}

/* Returns `value` plus or minus a random part of at most `probe_jitter` of it. */
TUNED_FUNCTION uint64_t tuned_jittered(const struct tuned_params *params, uint64_t value, uint32_t random)
{
	uint64_t spread = tuned_spread(params, value);

	return params->probe_jitter ? value - spread + tuned_below(2 * spread + 1, random) : value;
}

TUNED_FUNCTION uint32_t tuned_phase_gain(const struct tuned_state *it, const struct tuned_params *params)
{
	if (it->phase == TUNED_PHASE_PROBE)
		return it->probe_gain;
	return it->phase == TUNED_PHASE_DRAIN ? it->drain_gain : params->cruise_gain;
}

TUNED_FUNCTION void tuned_advance_cycle(struct tuned_state *it, const struct tuned_params *params, uint64_t now_us,
					uint32_t random)
{
	it->phase = it->phase + 1 < it->phases ? it->phase + 1 : TUNED_PHASE_PROBE;
	it->phase_start_us = now_us;
	if (it->phase != TUNED_PHASE_PROBE)
		return;
	if (params->probe_interval_us)
		it->next_probe_us = now_us + tuned_jittered(params, params->probe_interval_us, random);
	else
		it->phases = TUNED_PHASE_CRUISE + tuned_jittered(params, params->cruise_phases, random);
}

/*
 * Enters PROBE_BW at a random phase except the drain. If probe_interval_us is set, it cruises first, and the first
 * probe begins at a random time within this interval.
 */
TUNED_FUNCTION void tuned_enter_cycle(struct tuned_state *it, const struct tuned_params *params,
				      const struct tuned_ack *ack)
{
	it->phases = TUNED_PHASE_CRUISE + params->cruise_phases;
	if (params->probe_interval_us) {
		it->phase = TUNED_PHASE_CRUISE;
		it->phase_start_us = ack->now_us;
		it->next_probe_us = ack->now_us + tuned_below(params->probe_interval_us, ack->random[0]);
		return;
	}
	it->phase = it->phases - 1 - tuned_below(it->phases - 1, ack->random[0]);
	tuned_advance_cycle(it, params, ack->now_us, ack->random[1]);
}

/*
 * Returns whether the phase has lasted for a minimum round-trip time; while cruising, if probe_interval_us is set,
 * whether the next probe is due.
 */
TUNED_FUNCTION uint32_t tuned_is_full_length(const struct tuned_state *it, const struct tuned_params *params,
					     const struct tuned_ack *ack)
{
	if (it->phase >= TUNED_PHASE_CRUISE && params->probe_interval_us)
		return ack->now_us >= it->next_probe_us;
	return ack->before.min_rtt_us != TUNED_NO_RTT && ack->now_us - it->phase_start_us > ack->before.min_rtt_us;
}

/*
 * Returns the predicted number of packets in flight when the next packet departs; `inflight` is the current number.
 * With a gain above 1, the burst that departs then is added.
 */
TUNED_FUNCTION uint64_t tuned_inflight_at_departure(const struct tuned_ack *ack, uint64_t inflight, uint32_t gain)
{
	uint64_t delivered = ack->bw * ack->departure_us >> TUNED_BW_SHIFT;

	if (gain > TUNED_UNIT)
		inflight += tuned_burst(ack, ack->pacing_rate);
	return inflight > delivered ? inflight - delivered : 0;
}

/* Returns the number of packets in flight with which the path holds `gain` times the BDP. */
TUNED_FUNCTION uint64_t tuned_target_inflight(const struct tuned_state *it, const struct tuned_ack *ack, uint32_t gain)
{
	return tuned_headroom(ack, tuned_bdp(ack->max_bw, ack->before.min_rtt_us, gain), ack->pacing_rate,
			      it->phase == TUNED_PHASE_PROBE);
}

TUNED_FUNCTION uint32_t tuned_is_phase_over(const struct tuned_state *it, const struct tuned_params *params,
					    const struct tuned_ack *ack)
{
	uint32_t is_full_length = tuned_is_full_length(it, params, ack);
	/* The gain that was in effect; 1 while the rate of a policer is used. */
	uint32_t gain = ack->before.is_policed || ack->after.is_policed ? TUNED_UNIT : it->pacing_gain;
	uint64_t inflight;

	if (gain == TUNED_UNIT || (it->phase >= TUNED_PHASE_CRUISE && gain == params->cruise_gain))
		return is_full_length;
	inflight = tuned_inflight_at_departure(ack, ack->prior_inflight, gain);
	if (gain > TUNED_UNIT)
		return is_full_length && (ack->losses || inflight >= tuned_target_inflight(it, ack, gain));
	return is_full_length || inflight <= tuned_target_inflight(it, ack, TUNED_UNIT);
}

/*
 * Called when a round begins. Returns whether the clock of the bandwidth maximum ticks. The kernel's clock ticks once
 * per round. If probes are further apart than the maximum lasts, it ticks less often, so that the maximum includes a
 * probe.
 */
TUNED_FUNCTION uint32_t tuned_tick(struct tuned_state *it, const struct tuned_params *params, uint64_t now_us)
{
	uint64_t interval_us = params->probe_interval_us, cruising = params->cruise_phases;
	uint64_t length = TUNED_BW_ROUNDS;

	if (!interval_us)
		length = tuned_max(length, TUNED_PHASE_CRUISE + cruising + tuned_spread(params, cruising) + 2);
	it->tick_progress += TUNED_BW_ROUNDS;
	if (it->tick_progress < length || now_us < it->next_tick_us)
		return 0;
	it->tick_progress %= length;
	it->next_tick_us = now_us + (interval_us + tuned_spread(params, interval_us)) / 8;
	return 1;
}

#endif
