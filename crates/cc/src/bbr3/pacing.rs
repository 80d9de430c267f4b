//! At which rate may packets leave? (5.6.2)
//!
//! At the pacing gain times the bandwidth, less 1 %. Until the pipe is full the rate never falls, for the first samples
//! are of the initial window's pauses and not of the path.

use super::state::{Bbr3, STARTUP_GAIN};
use crate::fixed_point::{Bandwidth, Gain};
use crate::{Conn, Window};
use thalweg_units::Span;

impl Bbr3 {
    /// Before the first rate sample: the startup gain times a window per round trip, or per millisecond if no
    /// round-trip time is known.
    pub(super) fn set_initial_pacing_rate(&mut self, conn: &Conn, window: &mut Window) {
        let rtt = conn.srtt.map_or(Span::from_millis(1), |srtt| srtt.max(Span::from_micros(1)));
        self.has_seen_rtt |= conn.srtt.is_some();
        window.pacing_rate = Bandwidth::of(window.cwnd, rtt).pacing_rate(conn.mss, STARTUP_GAIN);
    }

    /// Paces at `gain` times `bw`.
    pub(super) fn set_pacing_rate(&mut self, conn: &Conn, bw: Bandwidth, gain: Gain, window: &mut Window) {
        let rate = bw.pacing_rate(conn.mss, gain);
        if !self.has_seen_rtt && conn.srtt.is_some() {
            self.set_initial_pacing_rate(conn, window);
        }
        if self.full_pipe.is_reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }
}
