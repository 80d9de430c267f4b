/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule of bbr_auto: the losses and the queueing since the start of the previous probe determine the gain of a
 * probe. docs/concepts/bbr-tuned.md describes the rule.
 */
#ifndef THALWEG_BBR_TUNED_AUTO_GAIN_H
#define THALWEG_BBR_TUNED_AUTO_GAIN_H

/*
 * Maximum number of rounds after a probe whose losses are attributed to it: a loss is detected a round trip after
 * transmission.
 */
#define TUNED_PROBE_TAIL_ROUNDS 2

/* Base-2 logarithm of the unit of packet shares. */
#define TUNED_SHARE_SHIFT 16

/* Maximum gain, which equals the maximum of probe_gain. */
#define TUNED_MAX_PROBE_GAIN (TUNED_UNIT * 19 / 10)

TUNED_FUNCTION uint64_t tuned_lost_share(const struct tuned_tally *tally)
{
	return (tally->lost << TUNED_SHARE_SHIFT) / tuned_max(tally->lost + tally->delivered, 1);
}

TUNED_FUNCTION void tuned_count(struct tuned_tally *tally, const struct tuned_ack *ack)
{
	tally->delivered += ack->acked;
	tally->lost += ack->losses;
}

/*
 * Returns the target of the gain. `base` is the share of packets lost while cruising, `excess` the amount by which the
 * share lost in the probe exceeds it. `queue` is the mean queueing delay in units of 1/256 of the minimum round-trip
 * time.
 */
TUNED_FUNCTION uint64_t tuned_auto_target(const struct tuned_params *params, uint64_t base, uint64_t excess,
					  uint64_t queue)
{
	uint64_t reduction = (excess * params->auto_loss_response >> TUNED_SHARE_SHIFT) +
			     (queue * params->auto_queue_response >> 8);
	uint64_t kept = tuned_max((1 << TUNED_SHARE_SHIFT) - base, 1);
	uint64_t least = ((uint64_t)params->auto_min_gain << TUNED_SHARE_SHIFT) / kept;
	uint64_t gain = params->auto_max_gain > reduction ? params->auto_max_gain - reduction : 0;

	return tuned_min(tuned_max(gain, least), TUNED_MAX_PROBE_GAIN);
}

/*
 * Called when a probe begins: sets its gain. Also sets the gain of the drain, unless probe_drain_gain differs from its
 * default, 2 minus probe_gain.
 */
TUNED_FUNCTION void tuned_set_probe_gain(struct tuned_state *it, const struct tuned_params *params,
					 const struct tuned_ack *ack)
{
	struct tuned_auto *rule = &it->rule;
	uint64_t base = tuned_lost_share(&rule->cruise), in_probe = tuned_lost_share(&rule->probe);
	uint64_t excess = in_probe > base ? in_probe - base : 0, queue = 0, path_us = 0, target;

	if (ack->before.min_rtt_us != TUNED_NO_RTT)
		path_us = rule->samples * ack->before.min_rtt_us;
	if (path_us)
		queue = (rule->queued_us << 8) / path_us;
	if (rule->probe.delivered) {
		target = tuned_auto_target(params, base, excess, queue) << 8;
		rule->gain = (rule->gain * (TUNED_UNIT - params->auto_weight) + target * params->auto_weight) >> 8;
	}
	rule->probe = rule->cruise = (struct tuned_tally){0};
	rule->queued_us = rule->samples = rule->tail_rounds = 0;
	it->probe_gain = rule->gain >> 8;
	if (params->probe_drain_gain == tuned_complement(params->probe_gain))
		it->drain_gain = tuned_complement(it->probe_gain);
}

/* Counts an ACK in PROBE_BW. */
TUNED_FUNCTION void tuned_measure(struct tuned_auto *rule, const struct tuned_ack *ack, uint32_t is_probing)
{
	if (is_probing)
		rule->tail_rounds = TUNED_PROBE_TAIL_ROUNDS;
	else if (ack->is_round_start && rule->tail_rounds)
		rule->tail_rounds--;
	if (rule->tail_rounds) {
		tuned_count(&rule->probe, ack);
		return;
	}
	tuned_count(&rule->cruise, ack);
	if (ack->rtt_us == TUNED_NO_RTT || ack->before.min_rtt_us == TUNED_NO_RTT)
		return;
	if (ack->rtt_us > ack->before.min_rtt_us)
		rule->queued_us += ack->rtt_us - ack->before.min_rtt_us;
	rule->samples++;
}

/*
 * Called after the cycle has advanced: counts the ACK, and sets the gain of a probe that begins with it. Ignores ACKs
 * outside of PROBE_BW, including the one that ends PROBE_RTT.
 */
TUNED_FUNCTION void tuned_adapt_gain(struct tuned_state *it, const struct tuned_params *params,
				     const struct tuned_ack *ack, uint32_t was_probing)
{
	uint32_t is_probing = it->phase == TUNED_PHASE_PROBE;
	uint32_t was_elsewhere = ack->before.mode != TUNED_PROBE_BW && ack->after.mode != TUNED_PROBE_BW;

	if (!params->auto_weight || ack->before.mode == TUNED_PROBE_RTT || was_elsewhere)
		return;
	if (is_probing && !was_probing)
		tuned_set_probe_gain(it, params, ack);
	tuned_measure(&it->rule, ack, is_probing);
}

#endif
