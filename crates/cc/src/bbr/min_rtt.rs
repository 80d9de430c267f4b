//! The smallest round-trip time, and the state of ProbeRTT.

use crate::Conn;
use crate::jiffies::Jiffies;
use thalweg_units::Span;

#[derive(Debug, Default)]
pub(super) struct MinRtt {
    /// The minimum in whole microseconds; `None` before the first sample.
    pub rtt: Option<Span>,
    /// Time of the sample, or of its latest confirmation.
    pub(super) seen_at: Jiffies,
    /// Time at which ProbeRTT may end; `None` until the pipe has drained.
    pub(super) done_at: Option<Jiffies>,
    /// Whether a round has passed since the pipe drained.
    pub(super) is_round_done: bool,
}

impl MinRtt {
    /// Starts with the connection's minimum RTT.
    pub fn new(conn: &Conn) -> MinRtt {
        MinRtt { rtt: conn.min_rtt.map(whole_micros), seen_at: conn.jiffies, ..MinRtt::default() }
    }

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("min_rtt_us", self.rtt.map_or(u64::from(u32::MAX), Span::as_micros));
        take("min_rtt_stamp", self.seen_at.0);
        take("probe_rtt_done_stamp", self.done_at.map_or(0, |done_at| done_at.0));
        take("probe_rtt_round_done", u64::from(self.is_round_done));
    }
}

pub(super) fn whole_micros(span: Span) -> Span {
    Span::from_micros(span.as_micros())
}
