//! The interface between BBR and a CPU rule that wraps it.

use crate::{Conn, Controller};

/// BBR's model of the path, and its mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Bandwidth in packets per microsecond, times 2^24.
    pub bw: u64,
    /// Minimum RTT; [`u32::MAX`] before the first sample.
    pub min_rtt_us: u64,
    /// Mode: 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT.
    pub mode: u8,
    /// Number of Startup rounds without growth.
    pub full_bw_count: u32,
    /// Short-term bound of the packets in flight; `None` without a bound, and for version 1.
    pub inflight_bound: Option<u64>,
    /// cwnd in packets before the bounds of the model; `None` outside ProbeBW, and for version 1, which has no such
    /// bounds.
    pub unbounded_cwnd: Option<u64>,
}

/// A version of BBR that a CPU rule may correct.
pub(crate) trait Wrapped: Controller {
    /// Name in the catalog of this version with a CPU rule.
    const NAME_WITH_RULE: &'static str;

    /// Linux's pacing gain of Startup in 256ths, with this version's rounding.
    const STARTUP_GAIN: u32;

    /// Share of a BDP, in hundredths, below which the rule `paper` considers too few packets to be in flight.
    const EXPECTED_PERCENT: u64;

    /// Stalls that cost at most 1/N of the time are left to BBR, whose probing compensates for them.
    const MISSED_RATIO: u64;

    /// A silence (a time without ACKs) counts as a stall only if the sender missed more than this of the pacing
    /// schedule in it, in microseconds: without a stall, bursts may be late by less.
    const MISSED_US: u64;

    /// Returns BBR's model of the path.
    fn model(&self) -> Model;

    /// Sets the pacing gain in 256ths; BBR may overwrite it.
    fn set_pacing_gain(&mut self, gain: u32);

    /// Confirms the smallest round-trip time, which postpones the next ProbeRTT.
    fn refresh_min_rtt(&mut self, conn: &Conn);

    /// Sets the number of Startup rounds without growth.
    fn set_full_bw_count(&mut self, count: u32);

    /// Ends Startup: marks the pipe as full.
    fn end_startup(&mut self);
}
