/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Start and end of PROBE_RTT. The kernel's BBR enters and leaves it; this file decides when, by its own clock.
 */
#ifndef THALWEG_BBR_TUNED_PROBE_RTT_H
#define THALWEG_BBR_TUNED_PROBE_RTT_H

/* Returns whether the smallest round-trip time has expired. */
TUNED_FUNCTION uint32_t tuned_is_min_rtt_expired(const struct tuned_state *it, const struct tuned_params *params,
						 uint64_t clock)
{
	return clock > it->min_rtt_at + params->probe_rtt_interval;
}

/* Returns whether cwnd has been low for long enough. */
TUNED_FUNCTION uint32_t tuned_is_probe_rtt_due(const struct tuned_state *it, uint64_t clock)
{
	return it->probe_rtt_done_at && clock > it->probe_rtt_done_at;
}

TUNED_FUNCTION uint64_t tuned_probe_rtt_cwnd(const struct tuned_params *params, const struct tuned_ack *ack)
{
	uint64_t share = 0;

	if (params->probe_rtt_bdp_share)
		share = tuned_bdp(ack->bw, ack->after.min_rtt_us, params->probe_rtt_bdp_share);
	return tuned_max(params->probe_rtt_cwnd, share);
}

/* Called when PROBE_RTT has ended: the smallest round-trip time counts as confirmed. */
TUNED_FUNCTION void tuned_leave_probe_rtt(struct tuned_state *it, uint64_t clock)
{
	it->min_rtt_at = clock;
	it->probe_rtt_done_at = 0;
}

TUNED_FUNCTION void tuned_update_probe_rtt(struct tuned_state *it, const struct tuned_params *params,
					   const struct tuned_ack *ack, struct tuned_output *out)
{
	uint32_t was_probe_rtt = ack->before.mode == TUNED_PROBE_RTT;

	if (ack->is_min_rtt_fresh)
		it->min_rtt_at = ack->clock;
	if (ack->after.mode != TUNED_PROBE_RTT) {
		if (was_probe_rtt)
			tuned_leave_probe_rtt(it, ack->clock);
		return;
	}
	if (!was_probe_rtt)
		it->probe_rtt_done_at = 0;
	if (!it->probe_rtt_done_at && ack->inflight <= tuned_probe_rtt_cwnd(params, ack)) {
		it->probe_rtt_done_at = ack->clock + params->probe_rtt_duration;
		out->is_probe_rtt_drained = 1;
	}
}

#endif
