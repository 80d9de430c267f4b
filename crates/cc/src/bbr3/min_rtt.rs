//! The smallest round-trip time, and the state of ProbeRTT.

use super::sample::Sample;
use crate::Conn;
use crate::jiffies::Jiffies;
use thalweg_units::Span;

/// Time for which a minimum is valid (2.16.1, MinRTTFilterLen).
const WINDOW_SECONDS: u64 = 10;

/// Time without a smaller round-trip time after which ProbeRTT begins (2.16.2, ProbeRTTInterval).
const INTERVAL_SECONDS: u64 = 5;

#[derive(Debug, Default)]
pub(super) struct MinRtt {
    /// The minimum of the last 10 s, in whole microseconds; `None` before the first sample.
    pub rtt: Option<Span>,
    seen_at: Jiffies,
    /// The minimum since ProbeRTT was last due.
    recent: Option<Span>,
    pub recent_at: Jiffies,
    /// Time at which ProbeRTT may end; `None` until the pipe has drained.
    pub done_at: Option<Jiffies>,
    /// Whether a round has passed since the pipe drained.
    pub is_round_done: bool,
}

impl MinRtt {
    /// Starts with the connection's minimum RTT.
    pub fn new(conn: &Conn) -> MinRtt {
        let rtt = conn.min_rtt.map(whole_micros);
        MinRtt { rtt, seen_at: conn.jiffies, recent: rtt, recent_at: conn.jiffies, ..MinRtt::default() }
    }

    /// Restarts the validity periods of both minima.
    pub fn refresh(&mut self, now: Jiffies) {
        self.seen_at = now;
        self.recent_at = now;
    }

    /// Adds a sample; returns whether ProbeRTT is due (5.3.4.3, UpdateMinRTT).
    pub fn update(&mut self, conn: &Conn, sample: &Sample) -> bool {
        let now = conn.jiffies;
        let is_due = now > self.recent_at + conn.hz.seconds(INTERVAL_SECONDS);
        if let Some(rtt) = sample.rtt.map(whole_micros) {
            let is_lower = self.recent.is_none_or(|recent| rtt < recent);
            if is_lower || (is_due && !sample.is_delayed) {
                self.recent = Some(rtt);
                self.recent_at = now;
            }
        }
        let is_expired = now > self.seen_at + conn.hz.seconds(WINDOW_SECONDS);
        let is_lower = match (self.recent, self.rtt) {
            (Some(recent), Some(rtt)) => recent <= rtt,
            (_, rtt) => rtt.is_none(),
        };
        if is_lower || is_expired {
            self.rtt = self.recent;
            self.seen_at = self.recent_at;
        }
        is_due
    }
}

fn whole_micros(span: Span) -> Span {
    Span::from_micros(span.as_micros())
}
