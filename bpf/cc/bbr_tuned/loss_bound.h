/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bound of packets in flight after losses: if a round trip loses more than a given share of its packets, cwnd is
 * bounded.
 */
#ifndef THALWEG_BBR_TUNED_LOSS_BOUND_H
#define THALWEG_BBR_TUNED_LOSS_BOUND_H

#define TUNED_THRESHOLD_SHIFT 16
#define TUNED_BOUND_SHIFT 8

/* Growth of the bound per packet that is acknowledged in a probe: a quarter. */
#define TUNED_BOUND_GROWTH ((1 << TUNED_BOUND_SHIFT) / 4)

#define TUNED_MAX_BOUND (1ULL << 40)

TUNED_FUNCTION void tuned_end_loss_round(struct tuned_state *it, const struct tuned_params *params,
					 const struct tuned_ack *ack)
{
	uint64_t lost = (uint32_t)(ack->lost - it->start_lost);
	uint64_t delivered = (uint32_t)(ack->delivered - it->start_delivered);
	uint64_t from = (uint64_t)it->peak << TUNED_BOUND_SHIFT;
	uint32_t is_reduced = !it->is_settling &&
			      lost << TUNED_THRESHOLD_SHIFT > params->loss_threshold * (lost + delivered);

	if (is_reduced) {
		if (it->bound)
			from = tuned_min(from, it->bound);
		it->bound = tuned_max(from * params->loss_beta / TUNED_UNIT, TUNED_MIN_CWND << TUNED_BOUND_SHIFT);
	}
	it->is_settling = is_reduced;
	it->peak = 0;
	it->start_lost = ack->lost;
	it->start_delivered = ack->delivered;
}

TUNED_FUNCTION void tuned_update_losses(struct tuned_state *it, const struct tuned_params *params,
					const struct tuned_ack *ack, uint32_t is_probing)
{
	it->peak = tuned_max(it->peak, ack->prior_inflight);
	if (it->bound && is_probing)
		it->bound = tuned_min(it->bound + (uint64_t)ack->acked * TUNED_BOUND_GROWTH, TUNED_MAX_BOUND);
	if (ack->is_round_start)
		tuned_end_loss_round(it, params, ack);
}

TUNED_FUNCTION uint64_t tuned_bounded(const struct tuned_state *it, const struct tuned_params *params, uint64_t cwnd,
				      uint32_t is_probing)
{
	uint64_t share = is_probing ? TUNED_UNIT : TUNED_UNIT - params->headroom;

	if (!it->bound)
		return cwnd;
	return tuned_min(cwnd, tuned_max(it->bound * share >> 8 >> TUNED_BOUND_SHIFT, TUNED_MIN_CWND));
}

#endif
