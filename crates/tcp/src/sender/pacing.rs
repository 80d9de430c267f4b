//! When the next burst may leave, and how long it is.
//!
//! Linux hands segments to the network in bursts (TSO packets). A burst holds about a millisecond's worth at the pacing
//! rate, so that a slow connection sends few segments at a time and a fast one spends little work on each. Short paths
//! get longer bursts: what they add to the queue is gone within their round trip. A paced connection sends the next burst
//! when this one would have drained at the pacing rate; if the burst left late, half of its length at most is made up.
//! The first ten segments are not paced. Departures are kept to the nanosecond, and the timer for them is exact.

use super::Sender;
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

/// A burst is what the pacing rate carries in 2^-10 s: sk_pacing_shift.
const PACING_SHIFT: u32 = 10;
/// Most bytes of a burst: 64 KiB less the headers and one byte (sk_gso_max_size).
pub(super) const BURST_MAX: u64 = 65_536 - 320 - 1;
/// A smallest round-trip time of 2^9 us halves what short paths add: net.ipv4.tcp_tso_rtt_log.
const TSO_RTT_LOG: u32 = 9;
/// Segments sent before pacing begins.
const UNPACED_SEGMENTS: u64 = 10;
/// How much faster than cwnd per round trip a connection without a pacing controller may send, in percent: early in slow
/// start (net.ipv4.tcp_pacing_ss_ratio) and else (tcp_pacing_ca_ratio).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

/// Departure of the next burst, and the burst that is leaving.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// When the next burst may leave; of a connection that is not paced: when the latest has left.
    pub departure: Time,
    /// Whether something waits for the departure.
    pub is_waiting: bool,
    /// Segments of the present burst that have yet to leave.
    pub left: u64,
    /// Segments of the present burst in all.
    pub size: u64,
    /// Payload of the present burst so far.
    bytes: u64,
    /// How late the present burst began.
    lag: Span,
}

impl Pacer {
    /// A burst of `segments` begins.
    pub fn begin(&mut self, now: Time, segments: u64) {
        self.lag = now.since(self.departure);
        self.departure = self.departure.max(now);
        self.left = segments;
        self.size = segments;
        self.bytes = 0;
    }

    /// A segment of the burst has left. After the last one the next departure is known; `rate`: if it is paced.
    pub fn on_sent(&mut self, len: u32, segments_sent: u64, rate: Option<Rate>) {
        self.bytes += u64::from(len);
        self.left = self.left.saturating_sub(1);
        if self.left > 0 || segments_sent < UNPACED_SEGMENTS {
            return;
        }
        let Some(rate) = rate.filter(|rate| *rate != Rate::ZERO && *rate != Rate(u64::MAX)) else {
            return;
        };
        let length = rate.time_to_send(Bytes(self.bytes));
        let made_up = self.lag.min(Span(length.0 / 2));
        self.departure += length.saturating_sub(made_up);
    }
}

impl Sender {
    /// The pacing rate, if the connection is paced.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        self.is_paced.then_some(self.window.pacing_rate)
    }

    /// Whether the next burst has to wait; if so, the connection will want to wake when it may leave.
    pub(super) fn must_wait_for_departure(&mut self, now: Time) -> bool {
        if !self.is_paced || self.pacer.departure <= now {
            return false;
        }
        self.pacer.is_waiting = true;
        true
    }

    /// How many segments a burst holds at most.
    pub(super) fn burst_size(&self) -> u64 {
        let shortness = self.rtt.min_rtt().map_or(0, |min| min.as_micros() >> TSO_RTT_LOG);
        let mut bytes = (self.window.pacing_rate.0 / 8) >> PACING_SHIFT;
        if shortness < 32 {
            bytes = bytes.saturating_add(BURST_MAX >> shortness);
        }
        let most = (BURST_MAX / self.config.mss.0).max(1);
        let Packets(least) = self.cc.min_burst(&self.window);
        (bytes.min(BURST_MAX) / self.config.mss.0).max(least).min(most)
    }

    /// Sets the rate that rules the bursts, and the departures if the host paces, of a connection whose controller does
    /// not set it.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.cc.paces() {
            return;
        }
        let is_early = self.window.cwnd.0 < self.window.ssthresh.0 / 2;
        let percent = if is_early { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let window = self.window.cwnd.0.max(self.board.packets_out());
        // Bits times percent per microsecond: below 2^64 for windows of up to 10^10 bytes.
        let scaled = window.saturating_mul(self.config.mss.0).saturating_mul(8 * percent * 10_000);
        let srtt_us = self.rtt.srtt().map_or(0, Span::as_micros).max(1);
        self.window.pacing_rate = Rate(scaled / srtt_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_burst_that_leaves_late_makes_up_half_of_its_length_at_most() {
        let rate = Some(Rate::from_mbps(8)); // 1000 bytes per millisecond
        let mut pacer = Pacer { departure: Time(100 * MS), ..Pacer::default() };
        pacer.begin(Time(100 * MS), 2);
        pacer.on_sent(1000, 50, rate);
        assert_eq!(pacer.departure, Time(100 * MS), "the burst is not over");
        pacer.on_sent(1000, 51, rate);
        assert_eq!(pacer.departure, Time(102 * MS));
        pacer.begin(Time(102 * MS + MS / 2), 2);
        pacer.on_sent(1000, 52, rate);
        pacer.on_sent(1000, 53, rate);
        assert_eq!(pacer.departure, Time(104 * MS), "half a millisecond late, and made up");
        pacer.begin(Time(200 * MS), 2);
        pacer.on_sent(1000, 54, rate);
        pacer.on_sent(1000, 55, rate);
        assert_eq!(pacer.departure, Time(201 * MS), "far too late: half the length is made up");
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer::default();
        for sent in 1..10 {
            pacer.begin(Time(5), 1);
            pacer.on_sent(1448, sent, Some(Rate::from_mbps(1)));
            assert_eq!(pacer.departure, Time(5));
        }
        pacer.begin(Time(5), 1);
        pacer.on_sent(1448, 10, Some(Rate::from_mbps(1)));
        assert!(pacer.departure > Time(11 * MS));
    }
}
