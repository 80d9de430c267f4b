/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The integer arithmetic of BBR version 3: one formula per function, without state.
 *
 * Units: bandwidth in packets per microsecond times 2^24, gains and fractions in 1/256, data in packets, times in
 * microseconds.
 */
#ifndef THALWEG_BBR3_FIXED_POINT_H
#define THALWEG_BBR3_FIXED_POINT_H

#include <stdint.h>

/* Always inlined: the verifier knows less about the arguments of a called function. */
#define BBR3_INLINE static inline __attribute__((always_inline))

/* Rarely executed code is a subprogram, so that the remaining code is compact, which helps if the caches are cold. */
#define BBR3_RARE static __attribute__((noinline, unused))

#define BBR3_BW_SHIFT 24
#define BBR3_BW_UNIT (1ULL << BBR3_BW_SHIFT)
#define BBR3_GAIN_SHIFT 8
#define BBR3_UNIT (1 << BBR3_GAIN_SHIFT)

/* Value of a missing bound, and of a missing RTT sample. */
#define BBR3_INFINITE UINT32_MAX

/* 4: two packets in each direction with a receiver that acknowledges every other packet (draft: MinPipeCwnd). */
#define BBR3_MIN_CWND 4

/*
 * 2 %: a higher loss rate shows that too much is in flight (draft: LossThresh). 5/256 = 1.95 %, as rounded by Linux.
 */
#define BBR3_LOSS_THRESHOLD (BBR3_UNIT * 2 / 100)

/* 0.7: factor by which congestion reduces a bound (draft: Beta); Linux subtracts 30 %, rounded down. */
#define BBR3_BETA (BBR3_UNIT - BBR3_UNIT * 30 / 100)

/* 0.15: share of inflight_longterm that is left to other flows (draft: Headroom). */
#define BBR3_HEADROOM (BBR3_UNIT * 15 / 100)

/*
 * 1.25: a growth of the bandwidth below this factor is a plateau (section "Exiting Acceleration Based on Bandwidth
 * Plateau").
 */
#define BBR3_FULL_BW_GROWTH (BBR3_UNIT * 5 / 4)

/* 1 %: pacing is slower than the bandwidth by this margin, so that queues drain (draft: PacingMarginPercent). */
#define BBR3_PACING_MARGIN_PERCENT 1

/*
 * Time between bandwidth probes: 2 to 3 seconds, or up to 63 round trips (section "Time Scale for Bandwidth
 * Probing").
 */
#define BBR3_PROBE_WAIT_BASE_US 2000000
#define BBR3_PROBE_WAIT_RANDOM_US 1000000
#define BBR3_PROBE_WAIT_RANDOM_ROUNDS 2
#define BBR3_PROBE_MAX_ROUNDS 63

/* inflight_longterm grows by at most 2^30 packets in a round trip of PROBE_BW_UP. */
#define BBR3_MAX_UP_ROUNDS 30

/* A burst is the data of 2^-10 s at the pacing rate, plus 64 KB halved for every 512 us of min_rtt, as in Linux. */
#define BBR3_TSO_RTT_SHIFT 9
#define BBR3_TSO_MAX_BYTES 65536
/* Linux's allowance for headers: MAX_TCP_HEADER in a typical configuration, plus 1. */
#define BBR3_TSO_HEADER_BYTES 321
#define BBR3_TSO_MIN_SEGMENTS 2

BBR3_INLINE uint32_t bbr3_min(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

BBR3_INLINE uint32_t bbr3_max(uint32_t left, uint32_t right)
{
	return left > right ? left : right;
}

/* Converts a 64-bit result to 32 bits: larger values become the largest one below BBR3_INFINITE. */
BBR3_INLINE uint32_t bbr3_saturate(uint64_t value)
{
	return value < BBR3_INFINITE ? value : BBR3_INFINITE - 1;
}

/* Returns `value` times a gain, rounded down. */
BBR3_INLINE uint32_t bbr3_scale(uint32_t value, uint32_t gain)
{
	return bbr3_saturate((uint64_t)value * gain >> BBR3_GAIN_SHIFT);
}

/*
 * Returns the delivery rate of `delivered` packets in `interval_us`, rounded up so that it can grow at low rates; 0
 * without an interval.
 */
BBR3_INLINE uint32_t bbr3_delivery_rate(uint32_t delivered, uint64_t interval_us)
{
	if (!interval_us)
		return 0;
	return bbr3_saturate((((uint64_t)delivered << BBR3_BW_SHIFT) + interval_us - 1) / interval_us);
}

/* Returns gain x bandwidth x min_rtt in packets, rounded up. No overflow below 2^30 packets at the highest gain. */
BBR3_INLINE uint32_t bbr3_bdp(uint32_t bw, uint32_t min_rtt_us, uint32_t gain)
{
	uint64_t scaled = (uint64_t)bw * min_rtt_us * gain >> BBR3_GAIN_SHIFT;

	return bbr3_saturate((scaled + BBR3_BW_UNIT - 1) >> BBR3_BW_SHIFT);
}

/* Returns the packets that `bw` delivers in `interval_us`, rounded down. */
BBR3_INLINE uint32_t bbr3_delivered_in(uint32_t bw, uint64_t interval_us)
{
	return bbr3_saturate((uint64_t)bw * interval_us >> BBR3_BW_SHIFT);
}

/*
 * Returns gain x bandwidth minus the margin, in bytes per second; at least 1. Fits 64 bits up to 2.9 Tbit/s at a gain
 * of 2.89.
 */
BBR3_INLINE uint64_t bbr3_pacing_rate(uint32_t bw, uint32_t mss, uint32_t gain)
{
	uint64_t rate = (uint64_t)bw * mss * gain >> BBR3_GAIN_SHIFT;

	rate = rate * (1000000 / 100 * (100 - BBR3_PACING_MARGIN_PERCENT)) >> BBR3_BW_SHIFT;
	return rate ? rate : 1;
}

/* Returns the number of segments of a burst at this pacing rate. */
BBR3_INLINE uint32_t bbr3_burst(uint64_t pacing_rate, uint32_t pacing_shift, uint32_t min_rtt_us, uint32_t mss)
{
	uint32_t halvings = min_rtt_us >> BBR3_TSO_RTT_SHIFT;
	uint64_t bytes = pacing_rate >> (pacing_shift & 63);

	if (halvings < 32)
		bytes += BBR3_TSO_MAX_BYTES >> halvings;
	if (bytes > BBR3_TSO_MAX_BYTES - BBR3_TSO_HEADER_BYTES)
		bytes = BBR3_TSO_MAX_BYTES - BBR3_TSO_HEADER_BYTES;
	return bbr3_max(mss ? bytes / mss : 0, BBR3_TSO_MIN_SEGMENTS);
}

/*
 * Returns whether the loss rate shows that too much was in flight; false if `tx_in_flight` is 0, which means unknown
 * (draft: IsInflightTooHigh).
 */
BBR3_INLINE uint32_t bbr3_is_loss_too_high(uint32_t lost, uint32_t tx_in_flight)
{
	return tx_in_flight && lost > bbr3_scale(tx_in_flight, BBR3_LOSS_THRESHOLD);
}

/*
 * Returns the number of packets in flight at which the loss rate crossed the threshold. `size` packets were lost at
 * once. Including these, `lost` packets were lost since the first of them was sent, when `tx_in_flight` were in
 * flight (draft: InflightAtLoss).
 */
BBR3_INLINE uint32_t bbr3_inflight_at_loss(uint32_t tx_in_flight, uint32_t lost, uint32_t size)
{
	uint32_t inflight_before = tx_in_flight > size ? tx_in_flight - size : 0;
	uint32_t lost_before = lost > size ? lost - size : 0;
	/* Number of lost packets that the threshold permits, rounded up. */
	uint32_t budget =
		bbr3_saturate(((uint64_t)inflight_before * BBR3_LOSS_THRESHOLD + BBR3_UNIT - 1) >> BBR3_GAIN_SHIFT);
	uint64_t prefix = 0;

	if (lost_before < budget)
		prefix = ((uint64_t)(budget - lost_before) << BBR3_GAIN_SHIFT) / (BBR3_UNIT - BBR3_LOSS_THRESHOLD);
	return bbr3_saturate(inflight_before + prefix);
}

/* Returns inflight_longterm without the headroom (draft: InflightWithHeadroom). */
BBR3_INLINE uint32_t bbr3_with_headroom(uint32_t inflight_longterm)
{
	if (inflight_longterm == BBR3_INFINITE)
		return BBR3_INFINITE;
	if (inflight_longterm <= BBR3_MIN_CWND)
		return BBR3_MIN_CWND;
	return bbr3_max(inflight_longterm - bbr3_max(bbr3_scale(inflight_longterm, BBR3_HEADROOM), 1), BBR3_MIN_CWND);
}

/*
 * Returns the number of acknowledged packets per packet of growth of inflight_longterm, in this round of PROBE_BW_UP
 * (RaiseInflightLongtermSlope).
 */
BBR3_INLINE uint32_t bbr3_acked_per_increment(uint32_t cwnd, uint32_t up_rounds)
{
	return bbr3_max(cwnd >> bbr3_min(up_rounds, BBR3_MAX_UP_ROUNDS), 1);
}

/* Returns the share of marked packets in units of 1/256. */
BBR3_INLINE uint32_t bbr3_ce_ratio(uint32_t marked, uint32_t delivered)
{
	return bbr3_min(((uint64_t)marked << BBR3_GAIN_SHIFT) / delivered, BBR3_UNIT);
}

/* Updates the average share of marks with a new one of weight 1/16 (Linux: ecn_alpha). */
BBR3_INLINE uint32_t bbr3_ecn_alpha(uint32_t alpha, uint32_t ratio)
{
	const uint32_t weight = BBR3_UNIT / 16;

	alpha = ((BBR3_UNIT - weight) * alpha >> BBR3_GAIN_SHIFT) + (weight * ratio >> BBR3_GAIN_SHIFT);
	return bbr3_min(alpha, BBR3_UNIT);
}

/* Returns the logarithm to the base 2, rounded down; 0 for 0. */
BBR3_INLINE uint32_t bbr3_log2(uint32_t value)
{
	uint32_t result = 0;

	if (value >> 16) {
		value >>= 16;
		result += 16;
	}
	if (value >> 8) {
		value >>= 8;
		result += 8;
	}
	if (value >> 4) {
		value >>= 4;
		result += 4;
	}
	if (value >> 2) {
		value >>= 2;
		result += 2;
	}
	return result + (value >> 1);
}

/* Returns the next pseudo-random number. Only its high bits are used, because its low bits are less random. */
BBR3_INLINE uint32_t bbr3_random(uint32_t previous)
{
	return previous * 1664525 + 1013904223;
}

/* Maps a random 32-bit number to 0 to `below` - 1. */
BBR3_INLINE uint32_t bbr3_random_below(uint32_t random, uint32_t below)
{
	return (uint64_t)random * below >> 32;
}

/* Returns the time until the next bandwidth probe (draft: PickProbeWait). */
BBR3_INLINE uint32_t bbr3_probe_wait_us(uint32_t random)
{
	return BBR3_PROBE_WAIT_BASE_US + bbr3_random_below(random, BBR3_PROBE_WAIT_RANDOM_US);
}

/*
 * Returns the maximum number of round trips between bandwidth probes, for a target of packets in flight (draft:
 * IsRenoCoexistenceProbeTime).
 */
BBR3_INLINE uint32_t bbr3_probe_rounds(uint32_t target_inflight)
{
	return bbr3_min(target_inflight, BBR3_PROBE_MAX_ROUNDS);
}

#endif
