//! The interface between BBR and a rule around it.

use crate::{Conn, Controller};

/// BBR's model of the path, with the kernel's names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Packets per microsecond, times 2^24.
    pub bw: u64,
    /// [`u32::MAX`] before the first round-trip time.
    pub min_rtt_us: u64,
    /// 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT.
    pub mode: u8,
    /// Startup's rounds without growth.
    pub full_bw_count: u32,
    /// The short-term bound of what is in flight, in packets; none of version 1.
    pub inflight_bound: Option<u64>,
    /// cwnd before losses bound it, in packets; none where nothing but the model of version 1 decides.
    pub unbounded_cwnd: Option<u64>,
}

/// A version of BBR that a rule may correct.
pub(crate) trait Wrapped: Controller {
    /// Name in the catalog of the version with a rule.
    const NAME_WITH_RULE: &'static str;

    /// Pacing gain of Startup in 256ths, as it rounds it.
    const STARTUP_GAIN: u32;

    /// Share of a BDP below which the volume in flight is low, in hundredths: below the lowest pacing gain of an
    /// undisturbed flow.
    const EXPECTED_PERCENT: u64;

    /// Stalls that cost at most 1/N of the time are left to BBR, whose probing compensates for them.
    const MISSED_RATIO: u64;

    /// A silence counts as a stall if it missed more than this of the schedule, in microseconds: bursts may leave late.
    const MISSED_US: u64;

    /// Returns BBR's model of the path.
    fn model(&self) -> Model;

    /// The pacing gain in 256ths, until BBR sets it again.
    fn set_pacing_gain(&mut self, gain: u32);

    /// Confirms the smallest round-trip time: the time until the next ProbeRTT restarts.
    fn refresh_min_rtt(&mut self, conn: &Conn);

    /// Sets the number of Startup's rounds without growth.
    fn set_full_bw_count(&mut self, count: u32);

    /// The pipe is full.
    fn end_startup(&mut self);
}
