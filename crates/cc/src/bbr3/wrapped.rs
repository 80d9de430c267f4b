//! Implements [`Wrapped`], through which a CPU rule reads and changes BBR's state.

use super::state::{Bbr3, Mode, STARTUP_GAIN};
use crate::Conn;
use crate::fixed_point::Gain;
use crate::wrapped::{Model, Wrapped};
use thalweg_units::Span;

impl Wrapped for Bbr3 {
    const NAME_WITH_RULE: &'static str = "bbr3";
    const STARTUP_GAIN: u32 = STARTUP_GAIN.raw() as u32;
    // Below the pacing gain of phase Down (0.91 in Linux), so that this phase alone does not trigger the rule.
    const EXPECTED_PERCENT: u64 = 84;
    // BBRv3 probes only every 2 to 3 s, and the capacity lost to a stall between probes is not recovered.
    const MISSED_RATIO: u64 = 20;
    // For the same reason, the capacity that late bursts miss stays lost.
    const MISSED_US: u64 = 100;

    fn model(&self) -> Model {
        Model {
            bw: self.bandwidth().raw(),
            min_rtt_us: self.min_rtt.rtt.map_or(u64::from(u32::MAX), Span::as_micros),
            mode: self.mode as u8,
            full_bw_count: self.full_pipe.rounds,
            inflight_bound: self.short_term.inflight.map(|bound| bound.0),
            unbounded_cwnd: (self.mode == Mode::ProbeBw).then_some(self.unbounded_cwnd.0),
        }
    }

    fn set_pacing_gain(&mut self, gain: u32) {
        self.pacing_gain = Gain::from_raw(gain);
    }

    fn refresh_min_rtt(&mut self, conn: &Conn) {
        self.min_rtt.refresh(conn.jiffies);
    }

    fn set_full_bw_count(&mut self, count: u32) {
        self.full_pipe.rounds = count;
    }

    fn end_startup(&mut self) {
        self.full_pipe.is_reached = true;
    }
}
