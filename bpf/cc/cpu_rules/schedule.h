/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule `schedule`: a sender that was off CPU sends afterwards what BBR would have sent in that time.
 *
 * Pacing is a schedule: at every moment it determines how much data may have left. A sender that is off CPU falls
 * behind the schedule, and BBR does not catch up: it delivers less than the path carries, and mistakes that rate for
 * the path's bandwidth. docs/concepts/bbr-cpu.md derives the formulas.
 *
 * Amounts of data derived from a time are in byte-microseconds (bytes times 10^6): a rate in bytes per second times
 * microseconds needs no division.
 */
#ifndef THALWEG_CPU_RULES_SCHEDULE_H
#define THALWEG_CPU_RULES_SCHEDULE_H

/*
 * A sender without events for longer than this may have been off CPU: a burst is the data of 2^-10 s, and its ACKs
 * arrive together.
 */
#define RULE_STALL_US 1000

/*
 * In STARTUP, a full window does not explain a silence longer than both this and two round trips. The value is half of
 * BBR's allowance for aggregated ACKs.
 */
#define RULE_FULL_STALL_US 50000

/*
 * Stalls are compared with the time that BBR's probing compensates (rule_version.missed_ratio). The totals of this
 * comparison are halved when they exceed this time, or the time after which a stall is forgotten if that is longer:
 * short bursts of stalls also occur on a dedicated CPU.
 */
#define RULE_LATELY_US (1 << 20)

/*
 * Added to the time with which stalls are compared: the first packets of a connection are late even without a stall.
 */
#define RULE_DOUBT_US 30000

/*
 * Owed bytes are sent within the larger of these two: the time of a burst, and 1/RATIO of the longest stall, so that
 * the queue drains meanwhile. It is at most MAX, since the time on CPU may be shorter than 1/RATIO of a long stall.
 */
#define RULE_BURST_US 1024
#define RULE_BURST_RATIO 16
#define RULE_MAX_BURST_US 10000

/* Longer times are clamped to this value, so that nothing overflows. */
#define RULE_LONGEST_US (1 << 20)

/* A stall is remembered for this multiple of min_rtt plus the longest stall. */
#define RULE_MEMORY_ROUNDS 10

/* The longest stall decays by 1/N with each shorter one. */
#define RULE_STALL_FADE 8

/* A bandwidth below one packet per 17 ms does not bound samples: stalls do not affect flows paced so slowly. */
#define RULE_MIN_BW 1000

/* At a stall, the debt is limited to this multiple of the data that BBR would have sent in the longest stall. */
#define RULE_OWED_STALLS 2

/* A loss ratio above 1/N is congestion. */
#define RULE_LOSS_RATIO 50

/* Number of lost packets beyond that ratio before it counts as congestion. */
#define RULE_LOSS_EXCESS 10

/*
 * Congestion reduces the window to the first percentage. One round trip later it grows by a quarter of the delivered
 * packets up to the second percentage, and then by 1/256 of them.
 */
#define RULE_CAP_KEPT_PERCENT 70
#define RULE_CAP_KNOWN_PERCENT 90
#define RULE_CAP_SHIFT 8
#define RULE_CAP_BACK_SHIFT 2

/* Stalls empty the path. An RTT that exceeds the minimum by at most 1/N confirms the minimum. */
#define RULE_MIN_RTT_RATIO 8

/* Data sent ahead of the schedule is counted up to the largest burst. */
#define RULE_MAX_AHEAD ((int64_t)65536 * RULE_US_PER_S)

/* Maximum number of bytes that count as sent between two calls of the rule, so that products fit. */
#define RULE_MAX_BYTES (1 << 24)

#define RULE_US_PER_S 1000000

RULE_FUNCTION uint64_t rule_min(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

RULE_FUNCTION uint64_t rule_max(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

/* Returns whether the last stall is still remembered (RULE_MEMORY_ROUNDS). */
RULE_FUNCTION uint32_t rule_is_stalling(const struct rule_schedule *it, uint64_t now_us, uint64_t min_rtt_us)
{
	return it->stall_us && now_us - it->stalled_at_us < RULE_MEMORY_ROUNDS * (min_rtt_us + it->stall_us);
}

/*
 * Returns the corrected interval of a rate sample of `delivered` packets in `interval_us`. ACKs that wait for the CPU
 * are handled at the same moment, so a sample that begins between them is too fast. Therefore, while a stall is
 * remembered, samples are limited to the ACK rate between stalls.
 */
RULE_FUNCTION uint64_t rule_schedule_interval(const struct rule_schedule *it, uint64_t now_us, uint64_t min_rtt_us,
					      uint64_t delivered, uint64_t interval_us)
{
	uint64_t most = rule_max(it->bw, it->bw_before);

	if (most < RULE_MIN_BW || !rule_is_stalling(it, now_us, min_rtt_us) ||
	    delivered << RULE_BW_SHIFT <= most * interval_us)
		return interval_us;
	return (delivered << RULE_BW_SHIFT) / most;
}

/* Resets the state that is valid only while stalls are recent. */
RULE_FUNCTION void rule_schedule_forget(struct rule_schedule *it)
{
	it->stall_us = 0;
	it->bw = 0;
	it->bw_before = 0;
	it->excess = 0;
	it->unpaid = 0;
	it->cap = 0;
	it->known = 0;
	it->peak = 0;
	it->is_settling = 0;
}

/*
 * Handles a stall: the sender was off CPU for `away_us` until now. The ACK before a stall was handled when it arrived,
 * so two such ACKs at least a round trip apart yield a valid bandwidth sample.
 */
RULE_FUNCTION void rule_schedule_stall(struct rule_schedule *it, const struct rule_input *in, uint64_t away_us)
{
	uint64_t lasted_us = it->seen_us - it->mark_us;
	uint64_t bw;

	if (!it->stall_us) {
		it->mark_us = it->seen_us;
		it->mark_delivered = it->delivered;
	} else if (lasted_us && lasted_us >= in->min_rtt_us) {
		if (it->seen_us - it->bw_since_us > RULE_MEMORY_ROUNDS * (in->min_rtt_us + it->stall_us)) {
			it->bw_before = it->bw;
			it->bw = 0;
			it->bw_since_us = it->seen_us;
		}
		bw = ((uint64_t)(uint32_t)(it->delivered - it->mark_delivered) << RULE_BW_SHIFT) / lasted_us;
		it->bw = rule_max(it->bw, bw);
		it->mark_us = it->seen_us;
		it->mark_delivered = it->delivered;
	}
	it->stall_us = rule_max(it->stall_us - it->stall_us / RULE_STALL_FADE, away_us);
	it->stalled_at_us = in->now_us;
}

/*
 * Updates the debt of pacing with this ACK. Returns whether the sender was off CPU before it and stalls are frequent
 * enough to be compensated.
 */
RULE_FUNCTION uint32_t rule_schedule_account(struct rule_schedule *it, const struct rule_version *version,
					     const struct rule_input *in, uint64_t free_us)
{
	uint64_t away_us = rule_min(in->now_us - it->seen_us, RULE_LONGEST_US);
	uint64_t passed_us = free_us > it->free_us ? rule_min(free_us - it->free_us, RULE_LONGEST_US) : 0;
	uint64_t sent = rule_min(in->bytes_sent - it->bytes_sent, RULE_MAX_BYTES);
	uint64_t scheduled = it->rate * passed_us;
	uint64_t paced = sent;
	uint32_t is_full, is_long;
	uint64_t missed;
	int64_t owed;

	/* This is the first ACK, or the path, the receiver, the application or BBR itself held the sender back. */
	if (!it->seen_us || in->is_held_back || !in->prior_inflight || in->mode == RULE_PROBE_RTT ||
	    in->ca_state == RULE_CA_LOSS) {
		it->owed = 0;
		if (in->mode == RULE_PROBE_RTT && it->stall_us)
			it->stalled_at_us = in->now_us;
		return 0;
	}
	owed = it->owed + (int64_t)scheduled - (int64_t)(sent * RULE_US_PER_S);
	it->passed_us += passed_us;
	if (it->passed_us > rule_max(RULE_LATELY_US, RULE_MEMORY_ROUNDS * (in->min_rtt_us + it->last_stall_us))) {
		it->passed_us /= 2;
		it->missed_us /= 2;
	}

	/*
	 * If cwnd is too small for a burst, the path may be the reason for the silence. Exceptions: stalls are known,
	 * or the silence is longer than the path can cause and this ACK covers less than the path delivers in it.
	 */
	is_full = (uint64_t)in->prior_inflight * in->mss + (it->rate >> 10) + 2 * in->mss > (uint64_t)it->set_cwnd * in->mss;
	is_long = in->mode == RULE_STARTUP && away_us > rule_max(RULE_FULL_STALL_US, 2 * (uint64_t)in->min_rtt_us) &&
		  in->bw * away_us >> RULE_BW_SHIFT > (uint64_t)in->acked + RULE_MIN_CWND;
	if (away_us > RULE_STALL_US && (it->stall_us || !is_full || is_long)) {
		/* Packets sent at a raised rate used less of the schedule's time. */
		if (it->set_rate > it->rate)
			paced = sent * it->rate / it->set_rate;
		missed = scheduled - rule_min(paced * RULE_US_PER_S, scheduled);
		if (missed > it->rate * version->missed_us) {
			int64_t most = RULE_OWED_STALLS * it->rate * rule_max(it->stall_us, away_us);

			it->missed_us += missed / it->rate;
			it->last_stall_us = away_us;
			it->has_stalled = 1;
			if (it->missed_us * version->missed_ratio > it->passed_us + RULE_DOUBT_US) {
				it->owed = owed < most ? owed : most;
				return 1;
			}
		}
	}
	/* Only stalls are compensated, not late timers or a full window. */
	if (owed > 0 && owed > it->owed)
		owed = it->owed > 0 ? it->owed : 0;
	it->owed = owed > -RULE_MAX_AHEAD ? owed : -RULE_MAX_AHEAD;
	return 0;
}

/* Learns from losses how much data the path can take at once. Returns whether there is congestion. */
RULE_FUNCTION uint32_t rule_schedule_losses(struct rule_schedule *it, const struct rule_input *in)
{
	uint64_t acked = (uint32_t)(in->delivered - it->delivered);
	uint64_t lost = (uint64_t)(uint32_t)(in->lost - it->lost) * RULE_LOSS_RATIO;
	uint64_t floor;

	it->peak = rule_max(it->peak, in->prior_inflight);
	/* Before `cap` grows beyond `known`, delivered packets must offset each loss, up to one window of losses. */
	it->unpaid = rule_min(it->unpaid + lost, it->peak * RULE_LOSS_RATIO);
	it->unpaid -= rule_min(it->unpaid, acked);
	/* Losses among the packets in flight at the last congestion belong to that congestion. */
	if (it->is_settling && (int32_t)(in->delivered - it->settled) < 0)
		return 0;
	it->is_settling = 0;
	it->excess += lost;
	it->excess -= rule_min(it->excess, acked);
	if (it->excess <= RULE_LOSS_EXCESS * RULE_LOSS_RATIO) {
		if (it->cap < it->known)
			it->cap = rule_min(it->cap + (acked << (RULE_CAP_SHIFT - RULE_CAP_BACK_SHIFT)), it->known);
		else if (it->cap && !it->unpaid)
			it->cap += acked;
		return 0;
	}
	floor = rule_max(in->bw * in->min_rtt_us >> RULE_BW_SHIFT, RULE_MIN_CWND);
	it->cap = it->cap ? rule_min(it->cap >> RULE_CAP_SHIFT, it->peak) : it->peak;
	it->known = (it->cap << RULE_CAP_SHIFT) * RULE_CAP_KNOWN_PERCENT / 100;
	it->cap = rule_max(it->cap * RULE_CAP_KEPT_PERCENT / 100, floor) << RULE_CAP_SHIFT;
	it->settled = in->delivered + in->prior_inflight;
	it->is_settling = 1;
	it->excess = 0;
	it->peak = in->prior_inflight;
	return 1;
}

/*
 * Corrects the count of round trips without growth. The rate is measured from stall to stall, and several round trips
 * can pass between two stalls: only one of these is to count. So the count is held at one until every counted round
 * trip had a stall of its own.
 */
RULE_FUNCTION void rule_schedule_startup(struct rule_schedule *it, const struct rule_input *in, struct rule_output *out)
{
	uint32_t count = in->full_bw_count;

	if (!count) {
		it->flat_stalls = 0;
	} else if (count > it->full_bw_count && it->has_stalled &&
		   in->now_us - it->flat_at_us >= in->min_rtt_us + it->stall_us) {
		it->flat_stalls++;
		it->flat_at_us = in->now_us;
		it->has_stalled = 0;
	}
	if (it->stall_us && in->mode == RULE_STARTUP && count > 1 && it->flat_stalls < count) {
		count = 1;
		out->full_bw_count = count;
	}
	it->full_bw_count = count;
}

/*
 * Returns the window for a sender with stalls. It must cover a round trip and a stall: twice that in STARTUP, to grow,
 * and a quarter more in PROBE_BW, to probe. It opens as in slow start.
 */
RULE_FUNCTION uint64_t rule_schedule_opened(const struct rule_schedule *it, const struct rule_input *in)
{
	uint64_t needed = in->bw * (in->min_rtt_us + it->stall_us) >> RULE_BW_SHIFT;

	if (!it->stall_us || (in->mode != RULE_STARTUP && in->mode != RULE_PROBE_BW))
		return in->snd_cwnd;
	needed += in->mode == RULE_STARTUP ? needed : needed / 4;
	/* Relative to cwnd before this ACK, which BBR may already have increased by `acked`. */
	return rule_max(in->snd_cwnd, rule_min((uint64_t)in->prior_cwnd + in->acked, needed));
}

/*
 * Returns whether less is in flight than the data of a round trip and the last stall at BBR's rate, plus BBR's headroom
 * of three bursts. If more is in flight, the debt results from an overestimated bandwidth.
 */
RULE_FUNCTION uint32_t rule_schedule_has_room(const struct rule_schedule *it, const struct rule_input *in)
{
	uint64_t rate = in->pacing_rate_bytes_per_s;
	uint64_t headroom = 3 * rule_max(rate >> 10, 2 * in->mss);
	uint64_t inflight = (uint64_t)in->inflight * in->mss;

	return inflight <= headroom || (inflight - headroom) * RULE_US_PER_S < rate * (in->min_rtt_us + it->last_stall_us);
}

RULE_FUNCTION void rule_schedule(struct rule_schedule *it, const struct rule_version *version,
				 const struct rule_input *in, struct rule_output *out)
{
	uint64_t free_us = rule_max(in->departure_us, in->now_us);
	uint64_t rate = in->pacing_rate_bytes_per_s;
	uint64_t cwnd;
	uint32_t is_kept_full = 0, is_boosted;

	if (in->min_rtt_us > RULE_LONGEST_US) {
		/* min_rtt is unknown or too long: events before it is known and shorter are not counted later. */
		it->seen_us = 0;
		it->delivered = in->delivered;
		it->lost = in->lost;
		return;
	}
	if (it->stall_us && !rule_is_stalling(it, in->now_us, in->min_rtt_us))
		rule_schedule_forget(it);
	if (rule_schedule_account(it, version, in, free_us))
		rule_schedule_stall(it, in, rule_min(in->now_us - it->seen_us, RULE_LONGEST_US));
	if (it->stall_us && in->rtt_us && in->rtt_us <= in->min_rtt_us + in->min_rtt_us / RULE_MIN_RTT_RATIO &&
	    in->mode != RULE_PROBE_RTT)
		out->is_min_rtt_fresh = 1;
	if (it->stall_us && rule_schedule_losses(it, in) && in->mode == RULE_STARTUP && in->bw)
		out->is_startup_over = 1;
	rule_schedule_startup(it, in, out);
	cwnd = rule_schedule_opened(it, in);
	if (cwnd > in->snd_cwnd)
		out->snd_cwnd = cwnd;

	if (it->stall_us && it->cap && in->mode != RULE_PROBE_RTT) {
		uint64_t cap = it->cap >> RULE_CAP_SHIFT;
		uint64_t wanted = in->bw * (in->min_rtt_us + it->stall_us) >> RULE_BW_SHIFT;

		/* The path holds less than 1.25 times the data of a round trip and a stall, so it is kept full. */
		is_kept_full = wanted + wanted / 4 > cap && cap > in->inflight;
		if (is_kept_full)
			it->owed = (cap - in->inflight) * in->mss * RULE_US_PER_S;
		/* The cap accounts for losses of bursts; BBR's own bounds ignore stalls. */
		cwnd = rule_min(rule_max(in->unbounded_cwnd, cwnd), cap);
		out->snd_cwnd = cwnd;
	}
	is_boosted = it->owed > 0 && in->mode != RULE_PROBE_RTT && (is_kept_full || rule_schedule_has_room(it, in));
	/* The next burst includes the debt, unless stalls are long. */
	if (is_boosted) {
		rate += (uint64_t)it->owed /
			rule_min(rule_max(RULE_BURST_US, it->stall_us / RULE_BURST_RATIO), RULE_MAX_BURST_US);
		out->pacing_rate_bytes_per_s = rule_min(rate, in->max_pacing_rate_bytes_per_s);
		out->boosted = 1;
	}

	it->seen_us = in->now_us;
	it->free_us = free_us;
	it->bytes_sent = in->bytes_sent;
	it->rate = in->pacing_rate_bytes_per_s;
	it->set_rate = is_boosted ? out->pacing_rate_bytes_per_s : it->rate;
	it->set_cwnd = cwnd;
	it->delivered = in->delivered;
	it->lost = in->lost;
}

#endif
