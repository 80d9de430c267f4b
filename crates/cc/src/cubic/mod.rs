//! CUBIC: after congestion, cwnd is a cubic function of time that returns to the window at the congestion and then
//! exceeds it.
//!
//! ```text
//!   cwnd
//!    |                                        .     probing beyond W_max
//!  W_max - - -|- - - - - - - . . ' ' ' ' ' . '
//!    |        |        . '
//!    |        |     .                    W(t) = C (t - K)^3 + W_max
//!    |   0.7 W_max .'
//!    +--------+------------+-------------------> t
//!             0            K
//! ```
//!
//! `beta_ecn` is the milder reduction on ECN marks of RFC 8511 (ABE), which Linux does not have. Reno's window still
//! grows by the alpha that belongs to 0.7.
//!
//! Sources: RFC 9438; Ha, Rhee, Xu, "CUBIC" (2008); behaviour of Linux 6.x (`tcp_cubic`).
//!
//! Linux's deviations from RFC 9438:
//! - beta is 717/1024 and C is 410/1024, in integers; the cube root for K is inexact.
//! - Growth is limited to one segment per two acknowledged ones, instead of a target of at most 1.5 cwnd per round
//!   trip; the effect is the same.
//! - Reno's window always grows by alpha = 8/15, and not by 1 above W_max.
//! - Without a W_max (slow start ended by HyStart, or a timeout has reset it) cwnd grows by at least 5 % per round
//!   trip.
//! - A timeout resets W_max and the smallest round-trip time.
//! - Slow start is ended by HyStart, not by HyStart++.
//!
//! Deviation from Linux: 64-bit arithmetic saturates where Linux's wraps.
//!
//! Reported: `w_max_packets` (0 before the first congestion and after a timeout), `k_s` (K; 0 outside an epoch of the
//! curve), `reno_cwnd_packets` (Reno's window; 0 outside an epoch), `delay_min_us` (smallest round-trip
//! time; 0 before the first sample), `hystart_found` (whether HyStart has ended slow start: 1 or 0).

mod cube_root;
mod curve;
mod hystart;

use crate::growth::{self, AdditiveIncrease};
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use curve::{BETA, Curve};
use hystart::HyStart;
use rand_core::Rng;
use thalweg_units::{Packets, Span};

/// Round-trip times are ignored for this long after congestion avoidance restarts: they still include the queue that
/// led to the congestion.
const SETTLING_SECONDS: u64 = 1;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "hystart",
        about: "whether HyStart may end slow start before a loss does (1 or 0)",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
    Param {
        name: "beta_ecn",
        about: "factor by which an ECN mark multiplies the window; default: the factor for a loss (RFC 8511: 0.85)",
        default: 0.7,
        min: 0.5,
        max: 0.99,
        is_whole: false,
    },
];

/// CUBIC's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Cubic {
    is_hystart_on: bool,
    /// 1024 times the factor by which a mark multiplies the window.
    beta_ecn: u64,
    hystart: HyStart,
    curve: Curve,
    increase: AdditiveIncrease,
    /// Smallest round-trip time since the start of the connection or its last timeout, in whole microseconds and at
    /// least one.
    delay_min: Option<Span>,
}

impl Cubic {
    /// Creates CUBIC, with or without HyStart, that multiplies the window by `beta_ecn` on a mark.
    pub fn new(is_hystart_on: bool, beta_ecn: f64) -> Cubic {
        Cubic {
            is_hystart_on,
            beta_ecn: growth::in_1024ths(beta_ecn),
            hystart: HyStart::default(),
            curve: Curve::default(),
            increase: AdditiveIncrease::default(),
            delay_min: None,
        }
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_established(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.hystart = HyStart::new(conn);
    }

    fn on_packets_acked(&mut self, conn: &Conn, _packets: Packets, rtt: Option<Span>, window: &mut Window) {
        let Some(rtt) = rtt else { return };
        let settling = conn.hz.seconds(SETTLING_SECONDS);
        if self.curve.epoch_start().is_some_and(|start| conn.jiffies.since(start) < settling) {
            return;
        }
        let rtt = Span::from_micros(rtt.as_micros().max(1));
        let delay_min = self.delay_min.map_or(rtt, |smallest| smallest.min(rtt));
        self.delay_min = Some(delay_min);
        if self.is_hystart_on {
            self.hystart.on_ack(conn, rtt, delay_min, window);
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        let Some(acked) = growth::beyond_slow_start(conn, ack, window) else { return };
        let delay_min = self.delay_min.unwrap_or(Span::ZERO);
        let per_step = self.curve.acks_per_step(conn, window.cwnd, acked, delay_min);
        self.increase.grow(window, per_step, acked);
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        self.curve.reduce(window.cwnd, BETA)
    }

    fn ssthresh_on_mark(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        self.curve.reduce(window.cwnd, self.beta_ecn)
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        if next == CaState::Loss {
            self.hystart = HyStart::new(conn);
            self.curve = Curve::default();
            self.increase = AdditiveIncrease::default();
            self.delay_min = None;
        }
    }

    fn on_transmit_start(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.curve.pause(conn.jiffies, conn.jiffies.since(conn.last_sent_jiffies));
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("w_max_packets", self.curve.w_max().0 as f64);
        take("k_s", self.curve.k_s());
        take("reno_cwnd_packets", self.curve.reno_cwnd().0 as f64);
        take("delay_min_us", self.delay_min.map_or(0, Span::as_micros) as f64);
        take("hystart_found", f64::from(u8::from(self.hystart.is_found())));
    }

    fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("snd_cwnd_cnt", self.increase.credit().0);
        take("delay_min", self.delay_min.map_or(0, Span::as_micros));
        self.curve.kernel_words(take);
        self.hystart.kernel_words(take);
    }
}
