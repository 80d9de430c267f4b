//! The state that a connection reports, as `TCP_INFO` does on Linux.

use super::Sender;
use super::counters::Counters;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Rate, Span, Time};

/// State of a connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold; `None` while it is unlimited, as at the start of the connection.
    pub ssthresh: Option<Packets>,
    /// Segments in flight, including retransmissions of segments deemed lost.
    pub inflight: Packets,
    /// Pacing rate; `None` if the connection is not paced.
    pub pacing_rate: Option<Rate>,
    /// Latest valid delivery-rate sample, in payload bits per second; an application-limited one replaces an earlier
    /// one only if it is at least as fast. `None` before the first valid sample.
    pub delivery_rate: Option<Rate>,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Smallest round-trip time of the last five minutes.
    pub min_rtt: Option<Span>,
    /// Retransmission timeout, including backoff.
    pub rto: Span,
    /// State of loss recovery.
    pub ca_state: CaState,
    /// Segments deemed lost so far.
    pub lost: Packets,
    /// Number of delivered segments. As in Linux, the SYN and spurious retransmissions count, and segments that only an
    /// overtaken ACK reports do not.
    pub delivered: Packets,
    /// Whether rate samples are currently application-limited.
    pub is_app_limited: bool,
    /// Counters since the start of the connection.
    pub counters: Counters,
}

impl Sender {
    /// Returns the state of the connection. It changes only with events, not with time.
    pub fn info(&self, _now: Time) -> Info {
        Info {
            cwnd: self.window.cwnd,
            ssthresh: (self.window.ssthresh != Packets::MAX).then_some(self.window.ssthresh),
            inflight: self.board.in_flight(),
            pacing_rate: self.pacing_rate(),
            delivery_rate: self.rate.delivery_rate(self.config.mss),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rto: self.rtt.rto(),
            ca_state: self.state,
            lost: Packets(self.board.lost_total()),
            delivered: Packets(self.rate.delivered),
            is_app_limited: self.rate.is_app_limited(),
            counters: self.counters,
        }
    }

    /// Passes the controller's own values to `take`.
    pub fn report(&self, now: Time, take: &mut dyn FnMut(&'static str, f64)) {
        self.cc.report(&self.conn(now), take);
    }
}
