//! BBR's pacing rate.
//!
//! It is the pacing gain times the bandwidth, less 1 % (draft-ietf-ccwg-bbr, 5.6.2). Until the pipe is full the rate
//! does not fall, because the first samples reflect the pauses of the initial window and not the path. The exception is
//! the first measured round-trip time, which replaces the initial assumption of 1 ms.

use crate::fixed_point::{Bandwidth, Gain};
use crate::{Conn, Window};
use thalweg_units::Span;

/// The state of BBR's pacing.
#[derive(Debug)]
pub(crate) struct Pacing {
    startup_gain: Gain,
    /// Whether the initial pacing rate was computed from a measured round-trip time.
    has_seen_rtt: bool,
}

impl Pacing {
    /// Creates the state before the initial rate is set.
    pub fn new(startup_gain: Gain) -> Pacing {
        Pacing { startup_gain, has_seen_rtt: false }
    }

    /// Whether the initial pacing rate was computed from a measured round-trip time.
    pub fn has_seen_rtt(&self) -> bool {
        self.has_seen_rtt
    }

    /// Sets the initial pacing rate: the startup gain times a window per round trip, or per millisecond if no
    /// round-trip time is known.
    pub fn begin(&mut self, conn: &Conn, window: &mut Window) {
        let rtt = conn.srtt.map_or(Span::from_millis(1), |srtt| srtt.max(Span::from_micros(1)));
        self.has_seen_rtt |= conn.srtt.is_some();
        window.pacing_rate = Bandwidth::of(window.cwnd, rtt).pacing_rate(conn.mss, self.startup_gain);
    }

    /// Sets the pacing rate to `gain` times `bw`, less 1 %; before the pipe is full, only if that raises it.
    pub fn set(&mut self, conn: &Conn, bw: Bandwidth, gain: Gain, is_pipe_full: bool, window: &mut Window) {
        let rate = bw.pacing_rate(conn.mss, gain);
        if !self.has_seen_rtt && conn.srtt.is_some() {
            self.begin(conn, window);
        }
        if is_pipe_full || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }
}
