//! The rule of the paper that found the problem: pace with the gain of Startup while less than a BDP is under way.
//!
//! Source: K. Elmenhorst, N. Aschenbruck, "2BRobust - Overcoming TCP BBR Performance Degradation in Virtual Machines under
//! CPU Contention", arXiv:2601.05665v1.

use super::rule::{BW_SHIFT, Input, Output, mode};

/// BBR's gain in Startup in 256ths, 2/ln 2: as it rounds it.
const HIGH_GAIN: u32 = 256 * 2885 / 1000 + 1;

/// What is under way is smoothed with weight 1/4 for the new value.
const SMOOTHING: u64 = 4;

/// For so many smoothed round trips after ProbeRTT little is under way because BBR wants it so.
const ROUNDS_AFTER_PROBE_RTT: u64 = 3;

/// BBR leaves 1 % of the bandwidth unused when it paces.
const PACING_PERCENT: u64 = 99;

/// What the rule keeps of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bbr_cpu) struct Paper {
    smoothed_inflight: Option<u64>,
    probe_rtt_seen_us: Option<u64>,
}

impl Paper {
    pub fn step(&mut self, input: &Input) -> Output {
        if input.mode == mode::PROBE_RTT {
            self.probe_rtt_seen_us = Some(input.now_us);
        }
        if input.mode != mode::PROBE_BW || input.rate_app_limited {
            return Output::default();
        }
        let inflight = input.inflight_bytes / input.mss;
        let smoothed = self.smoothed_inflight.map_or(inflight, |old| old - old / SMOOTHING + inflight / SMOOTHING);
        self.smoothed_inflight = Some(smoothed);
        let bdp = (input.bw * input.min_rtt_us).div_ceil(1 << BW_SHIFT);
        let is_soon_after =
            self.probe_rtt_seen_us.is_some_and(|at| input.now_us - at <= ROUNDS_AFTER_PROBE_RTT * input.srtt_us);
        if smoothed >= bdp || is_soon_after {
            return Output::default();
        }
        let scaled = u128::from(input.bw * input.mss * u64::from(HIGH_GAIN) / 256);
        let rate = (scaled * u128::from(1_000_000 / 100 * PACING_PERCENT)) >> BW_SHIFT;
        Output {
            pacing_rate_bytes_per_s: Some((rate as u64).min(input.max_pacing_rate_bytes_per_s)),
            pacing_gain: Some(HIGH_GAIN),
            is_boosted: true,
            ..Output::default()
        }
    }
}
