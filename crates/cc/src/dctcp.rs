//! DCTCP: reduces the window in proportion to the fraction of segments that were marked.
//!
//! ```text
//!   once per window    alpha = (1 - g) * alpha + g * F       F = marked / delivered segments of the window
//!   mark               ssthresh = max(cwnd - cwnd * alpha / 2, 2), also for a loss that a loss probe has repaired
//!   loss               ssthresh = max(cwnd / 2, 2)
//!   growth             as Reno
//! ```
//!
//! It is designed for queues that mark at a low threshold. The receiver must report which segments were marked
//! ([`EcnFeedback::Dctcp`]).
//!
//! Source: RFC 8257; behaviour of Linux 6.x (`tcp_dctcp`).
//!
//! Linux's deviations from RFC 8257: F counts segments instead of bytes; alpha is an integer in 1024ths that decays to
//! zero once its decay per window would round to zero.
//!
//! Linux sends ECT(0); with `ect1`, which Linux does not have, segments are ECT(1), and an L4S queue serves them.
//!
//! An ACK that ends a window counts towards that window, as in Linux since 6.15.
//!
//! Reported: `alpha`, from 0 to 1.

use crate::growth::{self, AdditiveIncrease, UNIT};
use crate::{Ack, CaState, Conn, Controller, EcnFeedback, Param, Window};
use rand_core::Rng;
use thalweg_units::{Bytes, Ecn, Packets, Span};

/// Maximum of alpha, in 1024ths: 1.
const ALPHA_MAX: u64 = UNIT;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "shift_g",
        about: "weight of a window in alpha, as a power of two: g = 2^-shift_g",
        default: 4.0,
        min: 0.0,
        max: 10.0,
        is_whole: true,
    },
    Param {
        name: "ect1",
        about: "whether segments are ECT(1), which dualpi2 serves as L4S, instead of ECT(0)",
        default: 0.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
];

/// DCTCP's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Dctcp {
    increase: AdditiveIncrease,
    shift_g: u32,
    codepoint: Ecn,
    /// 1024 times the smoothed fraction of marked segments.
    alpha: u64,
    /// The current window ends when the stream is acknowledged up to this offset.
    window_end: Bytes,
    /// [`Conn::delivered`] at the start of the window.
    delivered: Packets,
    /// [`Conn::delivered_ce`] at the start of the window.
    delivered_ce: Packets,
    /// cwnd before the latest reduction.
    prior_cwnd: Packets,
}

impl Dctcp {
    /// Creates DCTCP with g = 2^-`shift_g`, whose segments carry `codepoint`. Alpha starts at 1 (RFC 8257, section
    /// 4.2).
    pub fn new(shift_g: f64, codepoint: Ecn) -> Dctcp {
        Dctcp {
            increase: AdditiveIncrease::default(),
            shift_g: shift_g as u32,
            codepoint,
            alpha: ALPHA_MAX,
            window_end: Bytes::ZERO,
            delivered: Packets::ZERO,
            delivered_ce: Packets::ZERO,
            prior_cwnd: Packets::ZERO,
        }
    }

    fn begin_window(&mut self, conn: &Conn) {
        self.window_end = conn.next_bytes;
        self.delivered = conn.delivered;
        self.delivered_ce = conn.delivered_ce;
    }

    /// Updates alpha, the smoothed fraction of marked segments (RFC 8257, section 3.3).
    fn update_alpha(&mut self, delivered: u64, marked: u64) {
        let decay = self.alpha >> self.shift_g;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        let marked_1024ths = growth::scale(marked, UNIT >> self.shift_g, delivered.max(1));
        self.alpha = (self.alpha + marked_1024ths).min(ALPHA_MAX);
    }

    fn reduce_for_loss(&mut self, window: &mut Window) {
        self.prior_cwnd = window.cwnd;
        window.ssthresh = growth::half(window.cwnd);
    }
}

impl Controller for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn needs_ecn(&self) -> Option<EcnFeedback> {
        Some(EcnFeedback::Dctcp)
    }

    fn ecn_codepoint(&self) -> Ecn {
        self.codepoint
    }

    fn on_established(&mut self, conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {
        self.begin_window(conn);
    }

    fn on_packets_acked(&mut self, conn: &Conn, _packets: Packets, _rtt: Option<Span>, _window: &mut Window) {
        if conn.una_bytes >= self.window_end {
            let delivered = conn.delivered.saturating_sub(self.delivered);
            let marked = conn.delivered_ce.saturating_sub(self.delivered_ce);
            self.update_alpha(delivered.0, marked.0);
            self.begin_window(conn);
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        self.increase.on_ack(conn, ack, window);
    }

    // As in Linux, called after marks and losses alike; in fast recovery and after a timeout, the events below then set
    // ssthresh to half of the window.
    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        self.prior_cwnd = window.cwnd;
        let reduction = growth::scale(window.cwnd.0, self.alpha, 2 * UNIT);
        window.cwnd.saturating_sub(Packets(reduction)).max(Packets(2))
    }

    fn on_timeout(&mut self, _conn: &Conn, window: &mut Window) {
        self.reduce_for_loss(window);
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, _rng: &mut dyn Rng) {
        match next {
            // A loss during the response to marks turns the reduction into that of a loss.
            CaState::Recovery if conn.state != CaState::Recovery => self.reduce_for_loss(window),
            CaState::Loss => self.increase.reset(),
            _ => {}
        }
    }

    fn undo(&mut self, _conn: &Conn, _prior_cwnd: Packets, window: &Window) -> Packets {
        window.cwnd.max(self.prior_cwnd)
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        take("alpha", self.alpha as f64 / UNIT as f64);
    }

    fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("dctcp_alpha", self.alpha);
        take("next_seq", self.window_end.0);
        take("old_delivered", self.delivered.0);
        take("old_delivered_ce", self.delivered_ce.0);
        take("loss_cwnd", self.prior_cwnd.0);
        take("snd_cwnd_cnt", self.increase.credit().0);
    }
}
