//! Implements [`Wrapped`], through which a CPU rule reads and changes BBR's state.

use super::state::Bbr;
use crate::Conn;
use crate::fixed_point::Gain;
use crate::wrapped::{Model, Wrapped};
use thalweg_units::Span;

impl Wrapped for Bbr {
    const NAME_WITH_RULE: &'static str = "bbr_cpu";
    const STARTUP_GAIN: u32 = Gain::STARTUP.raw() as u32;
    const EXPECTED_PERCENT: u64 = 100;
    // A sender that stalls for a share s of the time delivers 1 - s of its pacing rate. A probe at 1.25 times the
    // bandwidth still reaches the bandwidth if s is at most 1 - 1/1.25, a fifth.
    const MISSED_RATIO: u64 = 5;
    // Linux shortens the wait after a late burst by the delay, up to half of the burst's own length
    // (tcp_update_skb_after_send()). A burst is the data of 2^-10 s, so delays of up to about 500 us are compensated.
    const MISSED_US: u64 = 500;

    fn model(&self) -> Model {
        Model {
            bw: self.bandwidth().raw(),
            min_rtt_us: self.min_rtt.rtt.map_or(u64::from(u32::MAX), Span::as_micros),
            mode: self.mode as u8,
            full_bw_count: self.full_pipe.rounds,
            inflight_bound: None,
            unbounded_cwnd: None,
        }
    }

    fn set_pacing_gain(&mut self, gain: u32) {
        self.pacing_gain = Gain::from_raw(gain);
    }

    fn refresh_min_rtt(&mut self, conn: &Conn) {
        self.min_rtt.seen_at = conn.jiffies;
    }

    fn set_full_bw_count(&mut self, count: u32) {
        self.full_pipe.rounds = count;
    }

    fn end_startup(&mut self) {
        self.full_pipe.is_reached = true;
    }
}
