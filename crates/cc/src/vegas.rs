//! Vegas: keeps two to four segments in the queue, based on the round-trip time.
//!
//! ```text
//!   once per window    diff = cwnd (RTT - BaseRTT) / BaseRTT      about the segments that wait in queues
//!   slow start         diff > gamma: cwnd = cwnd BaseRTT / RTT + 1, and slow start ends
//!   afterwards         diff < alpha: cwnd += 1
//!                      diff > beta:  cwnd -= 1
//!   loss               ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! BaseRTT is the smallest round-trip time since a segment was last sent with nothing in flight, RTT the smallest of
//! the window. A window with at most two samples is not evaluated; the ACK that ends it raises cwnd as in Reno. When
//! the state becomes other than [`CaState::Open`], Vegas behaves as Reno until it is Open again or a segment is sent
//! with nothing in flight.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet" (IEEE JSAC 13(8),
//! 1995), section on congestion avoidance and modified slow start; behaviour of Linux 6.1 (`tcp_vegas`).
//!
//! Linux's deviations from the paper:
//! - Losses are detected and repaired as for the other controllers; there is no fine-grained retransmission timer.
//! - Slow start doubles cwnd every round trip, not every other one.
//! - The paper compares the rates cwnd / BaseRTT and (what was sent) / RTT, so that diff = cwnd (RTT - BaseRTT) / RTT.
//!   Linux divides by BaseRTT: diff is larger than the number of segments that wait, by the factor RTT / BaseRTT.
//! - In slow start, cwnd grows whether or not it limits the sender.
//! - BaseRTT is reset after an idle period.
//! - The evaluation of a window raises ssthresh to at least three quarters of cwnd.
//!
//! Deviations from Linux: 64-bit arithmetic does not wrap where Linux's 32 bits do. ssthresh is at least 2; with a cwnd
//! of 2 Linux may set it to 1.
//!
//! Reported: `base_rtt_us` (plus 1 us, as in Linux; 0 without a sample), `diff_packets` (the latest diff; 0 before the
//! first).

use crate::growth::{self, AdditiveIncrease};
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use rand_core::Rng;
use thalweg_units::{Bytes, Packets, Span};

/// A window is evaluated only with more samples than this, since few may all come from delayed ACKs.
const FEW_SAMPLES: u64 = 2;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "alpha",
        about: "segments in the queue below which cwnd grows",
        default: 2.0,
        min: 0.0,
        max: 1000.0,
        is_whole: true,
    },
    Param {
        name: "beta",
        about: "segments in the queue above which cwnd shrinks",
        default: 4.0,
        min: 0.0,
        max: 1000.0,
        is_whole: true,
    },
    Param {
        name: "gamma",
        about: "segments in the queue above which slow start ends",
        default: 1.0,
        min: 0.0,
        max: 1000.0,
        is_whole: true,
    },
];

/// Thresholds for segments in queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    /// Minimum diff: below it, cwnd grows.
    pub alpha: u64,
    /// Maximum diff: above it, cwnd shrinks.
    pub beta: u64,
    /// Maximum diff in slow start: above it, slow start ends.
    pub gamma: u64,
}

/// Vegas's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Vegas {
    thresholds: Thresholds,
    increase: AdditiveIncrease,
    /// Whether windows are evaluated; otherwise cwnd grows as in Reno.
    is_on: bool,
    /// BaseRTT in microseconds plus one.
    base_rtt: Option<u64>,
    /// The window ends when the stream is acknowledged beyond this byte.
    window_end: Bytes,
    /// Smallest round-trip time of the window, in microseconds plus one.
    window_rtt: Option<u64>,
    /// Number of round-trip times sampled in the window.
    samples: u64,
    /// The latest diff.
    diff: u64,
}

impl Vegas {
    /// Creates Vegas with these thresholds.
    pub fn new(thresholds: Thresholds) -> Vegas {
        Vegas {
            thresholds,
            increase: AdditiveIncrease::default(),
            is_on: true,
            base_rtt: None,
            window_end: Bytes::ZERO,
            window_rtt: None,
            samples: 0,
            diff: 0,
        }
    }

    /// Starts a window with the next segment sent.
    fn begin_window(&mut self, conn: &Conn) {
        self.window_end = conn.next_bytes;
        self.window_rtt = None;
        self.samples = 0;
    }

    /// Discards earlier measurements and starts a window.
    fn start_over(&mut self, conn: &Conn) {
        self.is_on = true;
        self.base_rtt = None;
        self.begin_window(conn);
    }

    /// Adjusts cwnd at the end of a window. `base_rtt` is at least one, and `rtt` at least `base_rtt`.
    fn adjust(&mut self, ack: &Ack, base_rtt: u64, rtt: u64, window: &mut Window) {
        let Thresholds { alpha, beta, gamma } = self.thresholds;
        self.diff = growth::scale(window.cwnd.0, rtt - base_rtt, base_rtt);
        if window.is_in_slow_start() {
            if self.diff > gamma {
                let right = Packets(growth::scale(window.cwnd.0, base_rtt, rtt) + 1);
                window.cwnd = window.cwnd.min(right);
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else {
                growth::slow_start(window, ack.acked);
            }
        } else if self.diff > beta {
            window.cwnd = window.cwnd.saturating_sub(Packets(1));
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.diff < alpha {
            window.cwnd += Packets(1);
        }
        window.cwnd = window.cwnd.max(Packets(2));
        let three_quarters = Packets(window.cwnd.0 / 2 + window.cwnd.0 / 4);
        window.ssthresh = window.ssthresh.max(three_quarters).max(Packets(2));
    }
}

impl Controller for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_established(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.start_over(conn);
    }

    fn on_packets_acked(&mut self, _conn: &Conn, _packets: Packets, rtt: Option<Span>, _window: &mut Window) {
        let Some(rtt) = rtt else { return };
        let rtt = rtt.as_micros() + 1;
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |smallest| smallest.min(rtt)));
        self.window_rtt = Some(self.window_rtt.map_or(rtt, |smallest| smallest.min(rtt)));
        self.samples += 1;
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        if !self.is_on {
            self.increase.on_ack(conn, ack, window);
            return;
        }
        if conn.una_bytes <= self.window_end {
            if window.is_in_slow_start() {
                growth::slow_start(window, ack.acked);
            }
            return;
        }
        match (self.base_rtt, self.window_rtt) {
            (Some(base_rtt), Some(rtt)) if self.samples > FEW_SAMPLES => self.adjust(ack, base_rtt, rtt, window),
            _ => self.increase.on_ack(conn, ack, window),
        }
        self.begin_window(conn);
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        growth::half(window.cwnd)
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        self.is_on = next == CaState::Open;
        if self.is_on {
            self.begin_window(conn);
        }
        if next == CaState::Loss {
            self.increase.reset();
        }
    }

    fn on_transmit_start(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.start_over(conn);
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("base_rtt_us", self.base_rtt.unwrap_or(0) as f64);
        take("diff_packets", self.diff as f64);
    }
}
