//! Estimates ACK aggregation, and extends cwnd by it.
//!
//! Wi-Fi, cellular links and receive offload delay ACKs and deliver them in bursts, between which the sender would
//! stall. So cwnd is extended by the largest excess: the number of packets acknowledged in an aggregation epoch beyond
//! those that the estimated bandwidth delivers in that time, at most cwnd. An epoch restarts when ACKs arrive no faster
//! than that bandwidth.

use crate::fixed_point::{Bandwidth, Gain};
use thalweg_units::{Packets, Span, Time};

/// Rounds after which the older half of the window is dropped, unless the caller overrides it.
pub(crate) const HALF_WINDOW_ROUNDS: u32 = 5;

/// Number of acknowledged packets at which an aggregation epoch restarts.
const RESET_AT: u64 = 1 << 20;

/// Limits the extension to the packets that the bandwidth delivers in this time.
const MAX_ROOM: Span = Span::from_millis(100);

/// Linux stores the maximum in 16 bits and drops higher bits.
const KEPT_BITS: u64 = 0xFFFF;

/// The estimator of ACK aggregation.
#[derive(Debug, Default)]
pub(crate) struct Aggregation {
    /// Start of the aggregation epoch, and the packets acknowledged in it.
    start: Time,
    acked: Packets,
    /// The largest excess in each half of the window.
    excess: [Packets; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// Starts an aggregation epoch.
    pub fn begin(&mut self, now: Time) {
        self.start = now;
        self.acked = Packets::ZERO;
    }

    /// Handles the start of a round. After `half_window` rounds the older half of the window is dropped.
    pub fn begin_round(&mut self, half_window: u32) {
        self.rounds += 1;
        if self.rounds >= half_window {
            self.rounds = 0;
            self.current = 1 - self.current;
            self.excess[self.current] = Packets::ZERO;
        }
    }

    /// Handles an ACK at `now` that delivered `acked` packets (at least one) and has a valid rate sample.
    pub fn update(&mut self, now: Time, acked: Packets, bw: Bandwidth, cwnd: Packets) {
        let mut expected = bw.packets_in(Span::from_micros(now.as_micros().saturating_sub(self.start.as_micros())));
        if self.acked <= expected || self.acked + acked >= Packets(RESET_AT) {
            self.begin(now);
            expected = Packets::ZERO;
        }
        self.acked = (self.acked + acked).min(Packets(RESET_AT - 1));
        let excess = self.acked.saturating_sub(expected).min(cwnd);
        if excess > self.excess[self.current] {
            self.excess[self.current] = Packets(excess.0 & KEPT_BITS);
        }
    }

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("ack_epoch_mstamp", self.start.as_micros());
        take("ack_epoch_acked", self.acked.0);
        take("extra_acked_0", self.excess[0].0);
        take("extra_acked_1", self.excess[1].0);
        take("extra_acked_win_rtts", u64::from(self.rounds));
        take("extra_acked_win_idx", self.current as u64);
    }

    /// Returns the largest excess in the window.
    pub fn largest(&self) -> Packets {
        self.excess[0].max(self.excess[1])
    }

    /// Returns the extension of cwnd: `gain` times the largest excess, at most 100 ms' worth at `bw`.
    pub fn room(&self, bw: Bandwidth, gain: Gain) -> Packets {
        Packets((self.largest().0 * gain.raw()) >> 8).min(bw.packets_in(MAX_ROOM))
    }
}
