//! H-TCP: grows faster with the time since the latest congestion, and reduces cwnd by the amount that empties the
//! queue.
//!
//! ```text
//!   growth       cwnd += alpha per round trip
//!                alpha = 2 (1 - beta) f(D) s           D: seconds since the latest congestion
//!                f(D)  = 1                             D <= 1 s
//!                        1 + 10 (D - 1) + ((D - 1) / 2)^2
//!                s     = RTT_min / 100 ms              between 1/10 and 2; 1 without use_rtt_scaling
//!   congestion   ssthresh = max(beta cwnd, 2)
//!                beta  = RTT_min / RTT_max             between 0.5 and 0.8
//!                        0.5 with use_bandwidth_switch, if the epoch's largest throughput differs by more than a
//!                        fifth from that of the previous epoch
//! ```
//!
//! An epoch is the time from one congestion to the next.
//!
//! Sources: Leith, draft-leith-tcp-htcp-06 (increase function, adaptive backoff and its reset, RTT scaling); Leith and
//! Shorten, "H-TCP: TCP for high-speed and long-distance networks" (PFLDnet 2004); behaviour of Linux 6.1 (`tcp_htcp`).
//!
//! Linux's deviations from the draft:
//! - Time is counted in jiffies, round-trip times included. alpha and beta are integers in 128ths; f(D) and the scaled
//!   f(D) are whole numbers, the latter at least 1.
//! - beta is adaptive only from the second congestion on after a reset, and only where RTT_min is above 10 ms.
//! - RTT_max rises only in state Open, and ignores samples that exceed it by more than 20 ms. Every congestion reduces
//!   its distance from RTT_min by 5 %.
//! - D is measured from the end of recovery; during recovery, from its start.
//! - In congestion avoidance, cwnd grows by one per ACK at most, and alpha is updated only at these steps and at
//!   congestion. Segments acknowledged by the ACK that raises cwnd do not count towards the next step.
//!
//! Deviations from Linux: 64-bit arithmetic does not wrap where Linux's 32 bits do. The first throughput measurement
//! has no start time and counts as 0; Linux uses time 0 of its clock as the start.
//!
//! Reported: `alpha` (segments per round trip), `beta`, `min_rtt_ticks` and `max_rtt_ticks` (in jiffies; 0 before the
//! first sample), `max_throughput_pps` (largest of the epoch, in segments per second).

use crate::growth;
use crate::jiffies::{Hz, Jiffies};
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use rand_core::Rng;
use thalweg_units::{Packets, Span};

/// An alpha or beta of 1: both are in 128ths.
const ONE: u64 = 128;

/// Limits of beta: 0.5 and 0.8 (draft: adaptive backoff).
const BETA_MIN: u64 = ONE / 2;
const BETA_MAX: u64 = 102;

/// Maximum RTT_min at which beta stays at its minimum.
const SHORT_RTT: Span = Span::from_millis(10);

/// Samples that exceed RTT_max by more than this do not raise it.
const MAX_RTT_STEP: Span = Span::from_millis(20);

/// Number of round trips after congestion during which a measurement replaces the epoch's largest throughput.
const SETTLING_ROUNDS: u64 = 3;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "use_rtt_scaling",
        about: "whether growth per round trip is proportional to the smallest round-trip time (1 or 0)",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
    Param {
        name: "use_bandwidth_switch",
        about: "whether the window is halved on congestion if the throughput has changed by more than a fifth (1 or 0)",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
];

/// H-TCP's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Htcp {
    is_rtt_scaled: bool,
    is_bandwidth_watched: bool,
    /// 128 times the segments by which cwnd grows per round trip.
    alpha: u64,
    /// 128 times the factor by which congestion multiplies the window.
    beta: u64,
    /// Whether beta may adapt at the next congestion, which requires an earlier congestion since the last reset.
    is_adaptive: bool,
    /// Segments that the latest ACK in state Open acknowledged; 1 after congestion avoidance has handled it.
    acked: u64,
    /// Acknowledged segments that have not yet raised cwnd.
    credit: u64,
    /// Smallest round-trip time of the connection, in jiffies and at least one; `None` before the first sample.
    min_rtt: Option<Jiffies>,
    /// Largest round-trip time, which decays at each congestion.
    max_rtt: Jiffies,
    epoch_start: Jiffies,
    /// State before the latest reduction, kept for an undo.
    before: Option<Before>,
    throughput: Throughput,
}

/// The state that an undo restores. As in Linux, it is saved after `ssthresh`, which has already changed `max_rtt` and
/// `previous_max`.
#[derive(Debug)]
struct Before {
    epoch_start: Jiffies,
    max_rtt: Jiffies,
    previous_max: u64,
}

/// The achieved throughput, in segments per second.
#[derive(Debug, Default)]
struct Throughput {
    /// Segments acknowledged in the current measurement.
    packets: u64,
    /// Start of the current measurement; `None` for the first one.
    start: Option<Jiffies>,
    smoothed: u64,
    /// Largest throughput in the epoch.
    max: u64,
    /// `max` of the previous epoch.
    previous_max: u64,
}

impl Throughput {
    fn restart(&mut self, now: Jiffies) {
        self.packets = 0;
        self.start = Some(now);
    }

    /// Ends the current measurement. `is_settling`: the epoch has just begun.
    fn measure(&mut self, now: Jiffies, hz: Hz, is_settling: bool) {
        let elapsed = self.start.map(|start| now.since(start).0.max(1));
        let sample = elapsed.map_or(0, |elapsed| self.packets.saturating_mul(u64::from(hz.0)) / elapsed);
        if is_settling {
            self.smoothed = sample;
            self.max = sample;
        } else {
            self.smoothed = self.smoothed.saturating_mul(3).saturating_add(sample) / 4;
            self.max = self.max.max(self.smoothed);
        }
        self.restart(now);
    }

    /// Returns whether the largest throughput differs by more than a fifth from that of the previous epoch, and stores
    /// it for the next call.
    fn has_changed(&mut self) -> bool {
        let previous = std::mem::replace(&mut self.previous_max, self.max);
        let expected = previous.saturating_mul(4)..=previous.saturating_mul(6);
        !expected.contains(&self.max.saturating_mul(5))
    }
}

impl Htcp {
    /// Creates H-TCP, with or without RTT scaling, and with or without a backoff that depends on the throughput.
    pub fn new(is_rtt_scaled: bool, is_bandwidth_watched: bool) -> Htcp {
        Htcp {
            is_rtt_scaled,
            is_bandwidth_watched,
            alpha: ONE,
            beta: BETA_MIN,
            is_adaptive: false,
            acked: 1,
            credit: 0,
            min_rtt: None,
            max_rtt: Jiffies(0),
            epoch_start: Jiffies(0),
            before: None,
            throughput: Throughput::default(),
        }
    }

    fn sample_rtt(&mut self, conn: &Conn, rtt: Jiffies) {
        let min_rtt = self.min_rtt.map_or(rtt, |smallest| smallest.min(rtt));
        self.min_rtt = Some(min_rtt);
        if conn.state == CaState::Open {
            self.max_rtt = self.max_rtt.max(min_rtt);
            if rtt <= self.max_rtt + conn.hz.covering(MAX_RTT_STEP) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// Measures the throughput over about a window and at least a round trip.
    fn sample_throughput(&mut self, conn: &Conn, packets: Packets, cwnd: Packets) {
        if !matches!(conn.state, CaState::Open | CaState::Disorder) {
            self.throughput.restart(conn.jiffies);
            return;
        }
        self.throughput.packets += packets.0;
        let Some(min_rtt) = self.min_rtt else { return };
        let round_growth = (self.alpha / ONE).max(1);
        let is_window_done = cwnd.0.checked_sub(round_growth).is_some_and(|window| self.throughput.packets >= window);
        let is_round_done = self.throughput.start.is_none_or(|start| conn.jiffies.since(start) >= min_rtt);
        if is_window_done && is_round_done {
            let rounds = conn.jiffies.since(self.epoch_start).0 / min_rtt.0;
            self.throughput.measure(conn.jiffies, conn.hz, rounds <= SETTLING_ROUNDS);
        }
    }

    /// Updates beta by adaptive backoff, or resets it when the throughput has changed.
    fn update_beta(&mut self, hz: Hz) {
        if self.is_bandwidth_watched && self.throughput.has_changed() {
            self.beta = BETA_MIN;
            self.is_adaptive = false;
            return;
        }
        let min_rtt = self.min_rtt.unwrap_or_default();
        if self.is_adaptive && min_rtt > hz.covering(SHORT_RTT) && self.max_rtt.0 > 0 {
            self.beta = (min_rtt.0 * ONE / self.max_rtt.0).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.is_adaptive = true;
        }
    }

    /// Updates alpha by the increase function and its RTT scaling.
    fn update_alpha(&mut self, now: Jiffies, hz: Hz) {
        let second = u64::from(hz.0);
        let beyond = now.since(self.epoch_start).0.saturating_sub(second);
        let half = beyond / 2;
        let mut factor = 1 + (10 * beyond + half.saturating_mul(half) / second) / second;
        if let Some(min_rtt) = self.min_rtt.filter(|_| self.is_rtt_scaled) {
            // In eighths: 100 ms divided by the smallest round-trip time, between 1/2 and 10.
            let scale = (second * 8 / (10 * min_rtt.0)).clamp(4, 80);
            factor = (factor * 8 / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl Controller for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn on_established(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.epoch_start = conn.jiffies;
    }

    fn on_packets_acked(&mut self, conn: &Conn, packets: Packets, rtt: Option<Span>, window: &mut Window) {
        if conn.state == CaState::Open {
            self.acked = packets.0;
        }
        let ticks = rtt.map_or(Jiffies(0), |rtt| conn.hz.covering(rtt));
        if ticks.0 > 0 {
            self.sample_rtt(conn, ticks);
        }
        if self.is_bandwidth_watched {
            self.sample_throughput(conn, packets, window.cwnd);
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        if !conn.is_cwnd_limited {
            return;
        }
        if window.is_in_slow_start() {
            growth::slow_start(window, ack.acked);
            return;
        }
        if growth::scale(self.credit, self.alpha, ONE) >= window.cwnd.0 {
            window.cwnd += Packets(1);
            self.credit = 0;
            self.update_alpha(conn.jiffies, conn.hz);
        } else {
            self.credit += self.acked;
        }
        self.acked = 1;
    }

    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets {
        self.credit = 0;
        self.update_beta(conn.hz);
        self.update_alpha(conn.jiffies, conn.hz);
        if let Some(min_rtt) = self.min_rtt.filter(|min_rtt| *min_rtt < self.max_rtt) {
            self.max_rtt = Jiffies(min_rtt.0 + self.max_rtt.since(min_rtt).0 * 95 / 100);
        }
        Packets(growth::scale(window.cwnd.0, self.beta, ONE)).max(Packets(2))
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        match next {
            CaState::Open => {
                if self.before.take().is_some() {
                    self.epoch_start = conn.jiffies;
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                let previous_max = self.throughput.previous_max;
                self.before = Some(Before { epoch_start: self.epoch_start, max_rtt: self.max_rtt, previous_max });
                self.epoch_start = conn.jiffies;
                if next == CaState::Loss {
                    self.credit = 0;
                }
            }
        }
    }

    fn undo(&mut self, _conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        if let Some(before) = self.before.take() {
            self.epoch_start = before.epoch_start;
            self.max_rtt = before.max_rtt;
            self.throughput.previous_max = before.previous_max;
        }
        window.cwnd.max(prior_cwnd)
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("alpha", self.alpha as f64 / ONE as f64);
        take("beta", self.beta as f64 / ONE as f64);
        take("min_rtt_ticks", self.min_rtt.unwrap_or_default().0 as f64);
        take("max_rtt_ticks", self.max_rtt.0 as f64);
        take("max_throughput_pps", self.throughput.max as f64);
    }
}
