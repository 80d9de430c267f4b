//! BIC: after congestion, a binary search towards the window at which it occurred; beyond that window, a search for a
//! new maximum.
//!
//! ```text
//!   growth per round trip, with d = |W_max - cwnd|
//!     cwnd <= low_window              1                            as Reno
//!     cwnd < W_max                    min(d / 4, max_increment)    within 8 segments: 4 / smooth_part
//!     cwnd < W_max + 4                4 / smooth_part
//!     cwnd < W_max + 3 max_increment  d / 3
//!     otherwise                       max_increment
//!   congestion
//!     W_max = cwnd                    cwnd (1 + beta) / 2 if cwnd is below the W_max before, with fast_convergence
//!     ssthresh = max(beta cwnd, 2)    cwnd / 2 if cwnd <= low_window
//! ```
//!
//! Above low_window, growth is also multiplied by the average number of segments per ACK, which compensates for delayed
//! ACKs.
//!
//! Source: Xu, Harfoush and Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks" (INFOCOM
//! 2004): binary search increase, additive increase, slow start beyond W_max, fast convergence; behaviour of Linux 6.1
//! (`tcp_bic`).
//!
//! Linux's deviations from the paper:
//! - The search goes a quarter of the way to W_max, not half; S_max is 16 and not 32; the smallest increment is 4 /
//!   smooth_part and not 0.01; beta is 819/1024 = 0.8 and not 0.875.
//! - The growth is converted to a whole number of acknowledged segments per step, which is reused for up to 1/32 s
//!   while cwnd does not change.
//! - Without a W_max (before the first congestion and after a timeout) cwnd above low_window grows by at least 5 % per
//!   round trip.
//! - An ACK of several segments counts as several segments, in addition to the factor. The average starts at 2; if
//!   every ACK acknowledges one segment, integer rounding keeps it at 31/16.
//! - A timeout resets W_max.
//!
//! Reported: `w_max_packets` (0 before the first congestion and after a timeout), `acks_per_step` (acknowledged
//! segments that raise cwnd by one), `packets_per_ack`.

use crate::growth::{self, AdditiveIncrease, UNIT};
use crate::jiffies::{Hz, Jiffies};
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use rand_core::Rng;
use thalweg_units::{Packets, Span};

/// The search covers 1/N of the distance per round trip.
const SEARCH_DIVISOR: u64 = 4;

/// An average of 1: the average number of segments per ACK is in 16ths.
const RATIO_UNIT: u64 = 16;

/// While cwnd does not change, a result is reused for 1/N s, in whole ticks.
const REFRESHES_PER_SECOND: u64 = 32;

/// Maximum number of segments per step without a W_max, which is 5 % per round trip.
const MAX_FIRST_STEP: u64 = 20;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "fast_convergence",
        about: "fast convergence: whether W_max is lowered further if the window did not return to it (1 or 0)",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
    Param {
        name: "max_increment",
        about: "maximum growth of cwnd per round trip, in segments",
        default: 16.0,
        min: 1.0,
        max: 1000.0,
        is_whole: true,
    },
    Param {
        name: "low_window",
        about: "window in segments up to which it behaves as Reno",
        default: 14.0,
        min: 0.0,
        max: 10_000.0,
        is_whole: true,
    },
    Param {
        name: "beta",
        about: "1024 times the factor by which congestion multiplies the window",
        default: 819.0,
        min: 512.0,
        max: 1000.0,
        is_whole: true,
    },
    Param {
        name: "initial_ssthresh",
        about: "slow-start threshold of a new connection in segments; 0: unlimited",
        default: 0.0,
        min: 0.0,
        max: 1_000_000.0,
        is_whole: true,
    },
    Param {
        name: "smooth_part",
        about: "number of round trips for the last four segments before W_max",
        default: 20.0,
        min: 4.0,
        max: 1000.0,
        is_whole: true,
    },
];

/// Parameters of BIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub is_fast_converging: bool,
    pub max_increment: u64,
    pub low_window: u64,
    /// Factor by which congestion multiplies the window, in 1024ths.
    pub beta: u64,
    /// Initial ssthresh in segments; zero for unlimited.
    pub initial_ssthresh: u64,
    pub smooth_part: u64,
}

/// BIC's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Bic {
    settings: Settings,
    increase: AdditiveIncrease,
    search: Search,
}

/// State that a timeout resets.
#[derive(Debug)]
struct Search {
    /// The window at the last congestion, reduced by fast convergence; zero before the first congestion and after a
    /// timeout.
    w_max: u64,
    /// cwnd and time of the latest result.
    answered_cwnd: u64,
    answered_at: Jiffies,
    /// The latest result: acknowledged segments per step.
    per_step: u64,
    /// 16 times the average number of segments per ACK.
    per_ack: u64,
}

impl Search {
    fn new() -> Search {
        Search { w_max: 0, answered_cwnd: 0, answered_at: Jiffies(0), per_step: 0, per_ack: 2 * RATIO_UNIT }
    }

    /// Returns the number of acknowledged segments that raise `cwnd` by one, at least 1.
    fn acks_per_step(&mut self, settings: &Settings, now: Jiffies, hz: Hz, cwnd: u64) -> Packets {
        let lifetime = u64::from(hz.0) / REFRESHES_PER_SECOND;
        if self.answered_cwnd != cwnd || now.since(self.answered_at).0 > lifetime {
            self.answered_cwnd = cwnd;
            self.answered_at = now;
            self.per_step = self.compute(settings, cwnd);
        }
        Packets(self.per_step)
    }

    fn compute(&self, settings: &Settings, cwnd: u64) -> u64 {
        if cwnd <= settings.low_window {
            return cwnd;
        }
        let mut per_step = if cwnd < self.w_max {
            steps_below(settings, cwnd, self.w_max - cwnd)
        } else {
            steps_above(settings, cwnd, cwnd - self.w_max)
        };
        if self.w_max == 0 {
            per_step = per_step.min(MAX_FIRST_STEP);
        }
        (per_step * RATIO_UNIT / self.per_ack).max(1)
    }
}

/// Returns the segments per step of the binary search towards W_max, which is `missing` segments away.
fn steps_below(settings: &Settings, cwnd: u64, missing: u64) -> u64 {
    let distance = missing / SEARCH_DIVISOR;
    if distance > settings.max_increment {
        cwnd / settings.max_increment
    } else if distance <= 1 {
        cwnd * settings.smooth_part / SEARCH_DIVISOR
    } else {
        cwnd / distance
    }
}

/// Returns the segments per step above W_max, which cwnd exceeds by `excess` segments.
fn steps_above(settings: &Settings, cwnd: u64, excess: u64) -> u64 {
    if excess < SEARCH_DIVISOR {
        cwnd * settings.smooth_part / SEARCH_DIVISOR
    } else if excess < settings.max_increment * (SEARCH_DIVISOR - 1) {
        cwnd * (SEARCH_DIVISOR - 1) / excess
    } else {
        cwnd / settings.max_increment
    }
}

impl Bic {
    /// Creates BIC with these settings.
    pub fn new(settings: Settings) -> Bic {
        Bic { settings, increase: AdditiveIncrease::default(), search: Search::new() }
    }
}

impl Controller for Bic {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn on_established(&mut self, _conn: &Conn, window: &mut Window, _rng: &mut dyn Rng) {
        if self.settings.initial_ssthresh > 0 {
            window.ssthresh = Packets(self.settings.initial_ssthresh).max(Packets(2));
        }
    }

    fn on_packets_acked(&mut self, conn: &Conn, packets: Packets, _rtt: Option<Span>, _window: &mut Window) {
        if conn.state == CaState::Open {
            self.search.per_ack = self.search.per_ack - self.search.per_ack / RATIO_UNIT + packets.0;
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        let Some(acked) = growth::beyond_slow_start(conn, ack, window) else { return };
        let per_step = self.search.acks_per_step(&self.settings, conn.jiffies, conn.hz, window.cwnd.0);
        self.increase.grow(window, per_step, acked);
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        let Settings { is_fast_converging, low_window, beta, .. } = self.settings;
        let cwnd = window.cwnd.0;
        self.increase.reset();
        self.search.w_max = if cwnd < self.search.w_max && is_fast_converging {
            growth::scale(cwnd, UNIT + beta, 2 * UNIT)
        } else {
            cwnd
        };
        if cwnd <= low_window {
            return growth::half(window.cwnd);
        }
        Packets(growth::scale(cwnd, beta, UNIT)).max(Packets(2))
    }

    fn on_state(&mut self, _conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        if next == CaState::Loss {
            self.search = Search::new();
            self.increase.reset();
        }
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("w_max_packets", self.search.w_max as f64);
        take("acks_per_step", self.search.per_step as f64);
        take("packets_per_ack", self.search.per_ack as f64 / RATIO_UNIT as f64);
    }
}
