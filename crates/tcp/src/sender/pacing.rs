//! Departure and length of the next burst.
//!
//! Linux hands segments to the network in bursts (TSO packets). A burst lasts about a millisecond at the pacing rate,
//! and longer on short paths. A paced connection sends the next burst when the previous one would have drained at the
//! pacing rate. If a burst left late, the wait after it is shorter by that delay, but by at most half of the burst's
//! length.

use super::Sender;
use super::pacer::BURST_MAX;
use thalweg_units::{Packets, Rate, Span, Time};

/// A burst lasts 2^-10 s at the pacing rate: sk_pacing_shift.
const PACING_SHIFT: u32 = 10;
/// The increase of bursts on short paths is halved for every 2^9 us of the smallest round-trip time:
/// net.ipv4.tcp_tso_rtt_log.
const TSO_RTT_LOG: u32 = 9;
/// Pacing rate of a connection whose controller does not set one, in percent of cwnd per round trip: early in slow
/// start (net.ipv4.tcp_pacing_ss_ratio) and otherwise (tcp_pacing_ca_ratio).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

impl Sender {
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        self.is_paced.then_some(self.window.pacing_rate)
    }

    /// Whether the next burst must wait. If so, a wakeup at its departure is requested.
    pub(super) fn must_wait_for_departure(&mut self, now: Time) -> bool {
        if !self.is_paced || self.pacer.departure <= now {
            return false;
        }
        self.pacer.is_waiting = true;
        true
    }

    /// Returns the maximum number of segments in a burst.
    pub(super) fn burst_size(&self) -> u64 {
        let shortness = self.rtt.min_rtt().map_or(0, |min| min.as_micros() >> TSO_RTT_LOG);
        let mut bytes = (self.window.pacing_rate.0 / 8) >> PACING_SHIFT;
        if shortness < 32 {
            bytes = bytes.saturating_add(BURST_MAX >> shortness);
        }
        let most = (BURST_MAX / self.config.mss.0).max(1).min(self.cc.max_burst(&self.window).0);
        let Packets(least) = self.cc.min_burst(&self.window);
        (bytes.min(BURST_MAX) / self.config.mss.0).max(least).min(most)
    }

    /// Sets the pacing rate of a connection whose controller does not set it.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.cc.paces() {
            return;
        }
        let is_early = self.window.cwnd.0 < self.window.ssthresh.0 / 2;
        let percent = if is_early { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let window = self.window.cwnd.0.max(self.board.packets_out());
        // Bits, times the share, times microseconds per second.
        let scaled = window.saturating_mul(self.config.mss.0).saturating_mul(8 * percent * 10_000);
        let srtt_us = self.rtt.srtt().map_or(0, Span::as_micros).max(1);
        self.window.pacing_rate = Rate(scaled / srtt_us);
    }
}
