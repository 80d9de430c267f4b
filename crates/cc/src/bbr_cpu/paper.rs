//! The rule of the paper that described the problem: in ProbeBW, paces with the gain of Startup while less than a BDP
//! is in flight, except while the application limits the rate and until three RTTs after ProbeRTT. For version 3: less
//! than a share of the BDP, and less than the short-term bound.
//!
//! Source: K. Elmenhorst, N. Aschenbruck, "2BRobust - Overcoming TCP BBR Performance Degradation in Virtual Machines
//! under CPU Contention", arXiv:2601.05665v1.

use super::rule::{BW_SHIFT, Input, Output, mode};

/// The packets in flight are smoothed; a new value has weight 1/4.
const SMOOTHING: u64 = 4;

/// Number of smoothed RTTs after ProbeRTT in which few packets in flight are expected.
const ROUNDS_AFTER_PROBE_RTT: u64 = 3;

/// BBR paces at 99 % of the bandwidth.
const PACING_PERCENT: u64 = 99;

/// The rule's per-connection state.
#[derive(Clone, Copy, Debug)]
pub(in crate::bbr_cpu) struct Paper {
    /// BBR's pacing gain in Startup, in 256ths.
    high_gain: u32,
    /// Share of a BDP that is expected to be in flight, in hundredths.
    expected_percent: u64,
    smoothed_inflight: Option<u64>,
    probe_rtt_seen_us: Option<u64>,
}

impl Paper {
    pub fn new(high_gain: u32, expected_percent: u64) -> Paper {
        Paper { high_gain, expected_percent, smoothed_inflight: None, probe_rtt_seen_us: None }
    }

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
        let bdp = (input.bw * input.min_rtt_us * self.expected_percent).div_ceil(100 << BW_SHIFT);
        let expected = input.inflight_bound.map_or(bdp, |bound| bound.min(bdp));
        let is_soon_after =
            self.probe_rtt_seen_us.is_some_and(|at| input.now_us - at <= ROUNDS_AFTER_PROBE_RTT * input.srtt_us);
        if smoothed >= expected || is_soon_after {
            return Output::default();
        }
        let scaled = u128::from(input.bw * input.mss * u64::from(self.high_gain) / 256);
        let rate = (scaled * u128::from(1_000_000 / 100 * PACING_PERCENT)) >> BW_SHIFT;
        Output {
            pacing_rate_bytes_per_s: Some((rate as u64).min(input.max_pacing_rate_bytes_per_s)),
            pacing_gain: Some(self.high_gain),
            is_boosted: true,
            ..Output::default()
        }
    }
}
