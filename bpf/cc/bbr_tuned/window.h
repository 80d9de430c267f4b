/* SPDX-License-Identifier: GPL-2.0-only */
/* Computes cwnd like the kernel's BBR, with other gains and bounds. */
#ifndef THALWEG_BBR_TUNED_WINDOW_H
#define THALWEG_BBR_TUNED_WINDOW_H

TUNED_FUNCTION uint64_t tuned_target_cwnd(const struct tuned_params *params, const struct tuned_ack *ack,
					  const struct tuned_output *out, uint32_t is_probing)
{
	uint64_t target = tuned_bdp(ack->bw, ack->after.min_rtt_us, out->cwnd_gain);
	uint64_t bunch = (uint64_t)ack->extra_acked * params->aggregation_gain / TUNED_UNIT;

	if (ack->is_pipe_full)
		target += tuned_min(bunch, ack->bw * TUNED_MAX_BUNCH_US >> TUNED_BW_SHIFT);
	return tuned_headroom(ack, target, out->pacing_rate, is_probing);
}

/* Returns cwnd after the changes for losses and for the recovery state. */
TUNED_FUNCTION uint64_t tuned_cwnd_of_recovery(const struct tuned_ack *ack, uint64_t cwnd)
{
	uint32_t prior = ack->before.prior_ca_state;

	if (ack->losses)
		cwnd = cwnd > ack->losses ? cwnd - ack->losses : 1;
	if (ack->ca_state == TUNED_CA_RECOVERY && prior != TUNED_CA_RECOVERY)
		return ack->inflight + ack->acked;
	if (prior >= TUNED_CA_RECOVERY && ack->ca_state < TUNED_CA_RECOVERY)
		return tuned_max(cwnd, ack->prior_cwnd);
	return cwnd;
}

TUNED_FUNCTION uint64_t tuned_cwnd(const struct tuned_state *it, const struct tuned_params *params,
				   const struct tuned_ack *ack, const struct tuned_output *out, uint32_t is_probing)
{
	uint64_t cwnd = ack->cwnd, target;

	/* PROBE_RTT has ended, so cwnd is restored. */
	if (ack->before.mode == TUNED_PROBE_RTT && ack->after.mode != TUNED_PROBE_RTT)
		cwnd = tuned_max(cwnd, ack->prior_cwnd);
	if (ack->acked) {
		cwnd = tuned_cwnd_of_recovery(ack, cwnd);
		target = tuned_target_cwnd(params, ack, out, is_probing);
		if (ack->is_conserving)
			cwnd = tuned_max(cwnd, ack->inflight + ack->acked);
		else if (ack->is_pipe_full)
			cwnd = tuned_max(tuned_min(cwnd + ack->acked, target), TUNED_MIN_CWND);
		else if (cwnd < target || ack->delivered < TUNED_INITIAL_CWND)
			cwnd = tuned_max(cwnd + ack->acked, TUNED_MIN_CWND);
		else
			cwnd = tuned_max(cwnd, TUNED_MIN_CWND);
	}
	cwnd = tuned_min(cwnd, ack->cwnd_clamp);
	if (ack->after.mode == TUNED_PROBE_RTT)
		cwnd = tuned_min(cwnd, tuned_probe_rtt_cwnd(params, ack));
	return tuned_bounded(it, params, cwnd, is_probing);
}

#endif
