//! Illinois: losses trigger the reduction; the queueing delay determines its size, and the growth.
//!
//! ```text
//!   alpha                                beta
//!    10 |--.                             1/2 |              .------
//!       |   \                                |          .
//!       |     ' .                            |      .
//!   0.3 |           ' - . _ _            1/8 |---.
//!       +------------------> da              +------------------> da
//!        d1                dm                    d2        d3     dm
//!
//!   growth       cwnd += alpha per round trip     da: average queueing delay of the latest round trip
//!   congestion   ssthresh = max(cwnd (1 - beta), 2)    dm: largest queueing delay
//! ```
//!
//! alpha = k1 / (k2 + da) and beta = k3 + k4 da within their limits, where d1 = dm / 100, d2 = dm / 10, d3 = 8 dm / 10.
//! Both are set once per round trip; below `win_thresh` segments they are Reno's. After a delay above d1, alpha reaches
//! its maximum only after `theta` round trips of at most d1.
//!
//! Source: Liu, Basar and Srikant, "TCP-Illinois: A Loss and Delay-Based Congestion Control Algorithm for High-Speed
//! Networks" (Performance Evaluation 65, 2008); behaviour of Linux 6.1 (`tcp_illinois`).
//!
//! Linux's deviations from the paper:
//! - alpha is an integer in 128ths and beta in 64ths.
//! - Before the first round trip is over, alpha is 10.
//! - A window that losses have reduced below ten segments grows by up to 10 / cwnd segments for each acknowledged
//!   segment, until a round trip below `win_thresh` is over.
//! - Segments left over by the ACK that raises cwnd do not count towards the next step.
//!
//! Reported: `alpha` (segments per round trip), `beta`, `queueing_delay_us` (the latest da, which is not computed below
//! `win_thresh`), `max_queueing_delay_us`.

use crate::growth;
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use rand_core::Rng;
use thalweg_units::{Bytes, Packets, Span};

/// An alpha of 1 (alpha is in 128ths), and the limits of alpha.
const ALPHA_UNIT: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_UNIT / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_UNIT;

/// A beta of 1 (beta is in 64ths), and the limits of beta.
const BETA_UNIT: u64 = 64;
const BETA_MIN: u64 = BETA_UNIT / 8;
const BETA_MAX: u64 = BETA_UNIT / 2;

/// Longer round-trip times are clamped to this value, in microseconds: 3.4 s.
const RTT_LIMIT: u64 = u32::MAX as u64 / ALPHA_MAX;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "win_thresh",
        about: "window in segments below which it behaves as Reno",
        default: 15.0,
        min: 1.0,
        max: 10_000.0,
        is_whole: true,
    },
    Param {
        name: "theta",
        about: "number of round trips with low delay before growth returns to its maximum",
        default: 5.0,
        min: 1.0,
        max: 255.0,
        is_whole: true,
    },
];

/// Illinois's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Illinois {
    win_thresh: Packets,
    theta: u64,
    /// 128 times the segments by which cwnd grows per round trip.
    alpha: u64,
    /// 64 times the fraction by which congestion reduces the window.
    beta: u64,
    /// Segments that the latest ACK acknowledged; 1 after congestion avoidance has used the number.
    acked: u64,
    /// Acknowledged segments that have not yet raised cwnd.
    credit: u64,
    delays: Delays,
    /// Whether the delay was above d1 since the last timeout, or since alpha was last at its maximum.
    is_delayed: bool,
    /// Number of round trips with a delay of at most d1 since `is_delayed` was set.
    quiet_rounds: u64,
}

/// Statistics of round-trip times, in microseconds.
#[derive(Debug, Default)]
struct Delays {
    /// Smallest and largest round-trip time of the connection; `None` before the first sample.
    range: Option<(u64, u64)>,
    /// Sum and number of the samples in the current round trip.
    sum: u64,
    count: u64,
    /// The round trip ends when the stream is acknowledged beyond this byte.
    round_end: Bytes,
    /// Average queueing delay of the latest round trip for which it was computed.
    average: u64,
}

impl Delays {
    fn sample(&mut self, rtt: u64) {
        let rtt = rtt.min(RTT_LIMIT);
        let (smallest, largest) = self.range.unwrap_or((rtt, rtt));
        self.range = Some((smallest.min(rtt), largest.max(rtt)));
        self.sum += rtt;
        self.count += 1;
    }

    /// Returns the largest queueing delay (dm).
    fn max(&self) -> u64 {
        self.range.map_or(0, |(smallest, largest)| largest - smallest)
    }

    /// Computes the average queueing delay of the round trip (da); `None` without samples.
    fn take_average(&mut self) -> Option<u64> {
        let (smallest, _) = self.range?;
        let average = self.sum.checked_div(self.count)?;
        self.average = average - smallest;
        Some(self.average)
    }

    fn begin_round(&mut self, conn: &Conn) {
        self.round_end = conn.next_bytes;
        self.sum = 0;
        self.count = 0;
    }
}

impl Illinois {
    /// Creates Illinois with these parameters.
    pub fn new(win_thresh: Packets, theta: u64) -> Illinois {
        Illinois {
            win_thresh,
            theta,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            acked: 0,
            credit: 0,
            delays: Delays::default(),
            is_delayed: false,
            quiet_rounds: 0,
        }
    }

    /// Updates alpha and beta at the end of a round trip.
    fn update(&mut self, cwnd: Packets) {
        if cwnd < self.win_thresh {
            self.alpha = ALPHA_UNIT;
            self.beta = BETA_MAX;
        } else if let Some(average) = self.delays.take_average() {
            let max = self.delays.max();
            self.alpha = self.alpha_at(average, max);
            self.beta = beta_at(average, max);
        }
    }

    fn alpha_at(&mut self, average: u64, max: u64) -> u64 {
        let low = max / 100;
        if average <= low {
            if self.is_delayed {
                self.quiet_rounds += 1;
                if self.quiet_rounds < self.theta {
                    return self.alpha;
                }
            }
            self.quiet_rounds = 0;
            self.is_delayed = false;
            return ALPHA_MAX;
        }
        self.is_delayed = true;
        let (max, average) = (max - low, average - low);
        max * ALPHA_MAX / (max + average * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }
}

fn beta_at(average: u64, max: u64) -> u64 {
    let (low, high) = (max / 10, 8 * max / 10);
    if average <= low {
        BETA_MIN
    } else if average >= high || high <= low {
        BETA_MAX
    } else {
        (BETA_MIN * high + (BETA_MAX - BETA_MIN) * average - BETA_MAX * low) / (high - low)
    }
}

impl Controller for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn on_established(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.delays.begin_round(conn);
    }

    fn on_packets_acked(&mut self, _conn: &Conn, packets: Packets, rtt: Option<Span>, _window: &mut Window) {
        self.acked = packets.0;
        if let Some(rtt) = rtt {
            self.delays.sample(rtt.as_micros());
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        if conn.una_bytes > self.delays.round_end {
            self.update(window.cwnd);
            self.delays.begin_round(conn);
        }
        if !conn.is_cwnd_limited {
            return;
        }
        if window.is_in_slow_start() {
            growth::slow_start(window, ack.acked);
            return;
        }
        self.credit += self.acked;
        self.acked = 1;
        let steps = growth::scale(self.credit, self.alpha, ALPHA_UNIT) / window.cwnd.0;
        if steps > 0 {
            window.cwnd += Packets(steps);
            self.credit = 0;
        }
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.credit = 0;
        let reduction = growth::scale(window.cwnd.0, self.beta, BETA_UNIT);
        window.cwnd.saturating_sub(Packets(reduction)).max(Packets(2))
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        if next == CaState::Loss {
            self.alpha = ALPHA_UNIT;
            self.beta = BETA_MAX;
            self.quiet_rounds = 0;
            self.is_delayed = false;
            self.credit = 0;
            self.delays.begin_round(conn);
        }
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("alpha", self.alpha as f64 / ALPHA_UNIT as f64);
        take("beta", self.beta as f64 / BETA_UNIT as f64);
        take("queueing_delay_us", self.delays.average as f64);
        take("max_queueing_delay_us", self.delays.max() as f64);
    }
}
