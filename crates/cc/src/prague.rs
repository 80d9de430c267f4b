//! Prague: scalable congestion control for the Internet, which reduces its window in proportion to the fraction of
//! marked segments and depends little on the round-trip time.
//!
//! ```text
//!   virtual round trip   rtt_virt = max(srtt, rtt_virt_min)                                        2.4.4
//!   once per rtt_virt    alpha += (F - alpha) / 16       F = marked / delivered segments           2.3.2
//!   loss                 cwnd /= 2, after the undo of a mark's reduction less than rtt_virt ago    2.4.1
//!   mark                 cwnd *= 1 - alpha / 2, at most once per round trip and per rtt_virt       2.4.2
//!   unmarked segments    cwnd += acked / cwnd * min(srtt / rtt_virt, 1)^2, also in state Cwr       2.4.3, 2.4.4
//!   slow start           cwnd += acked, up to the first mark or loss, which halves cwnd            2.4.5
//!   pacing               cwnd / srtt, twice that below ssthresh / 2                                2.5.1
//!   burst                data sent in 250 us, at least a segment                                   2.5.2
//! ```
//!
//! Segments are ECT(1) (2.2), and the receiver reports how many were marked ([`EcnFeedback::Accurate`], 2.3.1).
//! Dependence on the round-trip time is reduced from `transition_rounds` rounds after slow start on, so that short
//! transfers are not slowed down. cwnd is fractional internally; the connection's cwnd follows it, rounded up to at
//! least 2. Below 2 the pacing rate, which is computed from the fractional cwnd, is the limit.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control-04, whose sections are stated above; RFC 9331, section 4.3.
//! Where the draft leaves a choice, the behaviour is that of the reference implementation for Linux (`tcp_prague`).
//!
//! Deviations: no fall-back for a classic AQM that marks (RFC 9331 asks for it where that is likely), no smaller
//! segments for small windows, no variation of the pacing rate, no paced chirping, no fall-back to Reno without
//! accurate feedback.
//!
//! Reported: `alpha`, from 0 to 1, from the first reduction for a mark on; `cwnd_fraction_packets`, cwnd before it is
//! rounded.

use crate::{Ack, CaState, Conn, Controller, EcnFeedback, Param, Window};
use rand_core::Rng;
use thalweg_units::{Bytes, Ecn, MSS, Packets, Rate, Span, Time};

/// Weight of a sample in alpha (2.3.2).
const GAIN: f64 = 1.0 / 16.0;
/// Minimum of the rounded cwnd.
const CWND_MIN: Packets = Packets(2);
/// Minimum pacing rate, in bits per second.
const RATE_MIN: f64 = 100_000.0;
/// Bytes of headers of a segment. As in Linux, the rate counts complete packets and the pacer counts payload, so that
/// cwnd, and not the pacing rate, is the limit for windows above 2.
const HEADERS: Bytes = Bytes(52);
/// A burst of several segments lasts at most 2^-12 s at the pacing rate (2.5.2).
const BURST_SHIFT: u32 = 12;

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "rtt_virt_min_ms",
        about: "virtual RTT in ms: shorter round-trip times count as this value; 0: off",
        default: 25.0,
        min: 0.0,
        max: 50.0,
        is_whole: false,
    },
    Param {
        name: "transition_rounds",
        about: "number of rounds after slow start before rtt_virt_min_ms applies",
        default: 500.0,
        min: 0.0,
        max: 1e6,
        is_whole: true,
    },
    Param {
        name: "alpha_init",
        about: "alpha at the first mark; that mark halves the window regardless of alpha",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        is_whole: false,
    },
];

/// Parameters of Prague.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    rtt_virt_min: Span,
    transition_rounds: u64,
    alpha_init: f64,
}

impl Settings {
    /// Returns the settings for these parameter values.
    pub fn of(value: &dyn Fn(&str) -> f64) -> Settings {
        Settings {
            rtt_virt_min: Span((value("rtt_virt_min_ms") * 1e6) as u64),
            transition_rounds: value("transition_rounds") as u64,
            alpha_init: value("alpha_init"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Reduction {
    at: Time,
    /// Segments that a loss restores: the size of a reduction for a mark, 0 for a loss.
    by: f64,
}

/// The counts at the start of an interval over which alpha is sampled.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    delivered: Packets,
    delivered_ce: Packets,
    at: Time,
}

/// The state of Prague.
#[derive(Debug)]
pub(crate) struct Prague {
    settings: Settings,
    /// cwnd in segments; the connection's cwnd follows it.
    cwnd: f64,
    /// The smoothed fraction of marked segments; `None` before the first reduction for a mark.
    alpha: Option<f64>,
    sample: Counts,
    /// [`Conn::delivered_ce`] at the latest ACK.
    delivered_ce: Packets,
    /// The current round ends when the stream is acknowledged up to this offset.
    round_end: Bytes,
    /// Rounds since the end of slow start.
    rounds: u64,
    reduction: Option<Reduction>,
}

impl Prague {
    /// Creates Prague with these settings.
    pub fn new(settings: Settings) -> Prague {
        Prague {
            settings,
            cwnd: 0.0,
            alpha: None,
            sample: Counts::default(),
            delivered_ce: Packets::ZERO,
            round_end: Bytes::ZERO,
            rounds: 0,
            reduction: None,
        }
    }

    fn is_in_slow_start(&self, window: &Window) -> bool {
        self.rounded() < window.ssthresh
    }

    /// Returns the virtual round-trip time (2.4.4).
    fn rtt_virt(&self, srtt: Span) -> Span {
        if self.rounds < self.settings.transition_rounds { srtt } else { srtt.max(self.settings.rtt_virt_min) }
    }

    /// Counts rounds, and updates alpha once per virtual round trip (2.3.2).
    fn update_alpha(&mut self, conn: &Conn, window: &Window) {
        if conn.una_bytes < self.round_end {
            return;
        }
        self.round_end = conn.next_bytes;
        self.rounds = if self.is_in_slow_start(window) { 0 } else { self.rounds + 1 };
        let is_due = conn.now.since(self.sample.at) >= self.settings.rtt_virt_min;
        if self.rounds >= self.settings.transition_rounds && !is_due {
            return;
        }
        let delivered = conn.delivered.saturating_sub(self.sample.delivered);
        let marked = conn.delivered_ce.saturating_sub(self.sample.delivered_ce);
        if let Some(alpha) = &mut self.alpha {
            let fraction = (marked.0 as f64 / delivered.0.max(1) as f64).min(1.0);
            *alpha += (fraction - *alpha) * GAIN;
        }
        self.sample = Counts { delivered: conn.delivered, delivered_ce: conn.delivered_ce, at: conn.now };
    }

    /// Raises cwnd for `acked` segments that were delivered without a mark: slow start (2.4.5), then additive increase
    /// (2.4.3).
    fn grow(&mut self, acked: u64, srtt: Span, window: &Window) {
        let mut acked = acked as f64;
        if self.is_in_slow_start(window) {
            let grown = (self.cwnd + acked).min(window.ssthresh.0 as f64);
            acked -= grown - self.cwnd;
            self.cwnd = grown;
        }
        let ratio = (srtt.as_secs_f64() / self.rtt_virt(srtt).as_secs_f64().max(1e-9)).min(1.0);
        self.cwnd += acked / self.cwnd.max(1.0) * ratio * ratio;
    }

    /// Reduces cwnd by the fraction `factor`, but not below the window of the minimum rate, which counts as at most one
    /// segment. Returns the reduction in segments.
    fn reduce(&mut self, conn: &Conn, factor: f64) -> f64 {
        let srtt = conn.srtt.unwrap_or(Span::ZERO).as_secs_f64();
        let least = (RATE_MIN * srtt / (8.0 * conn.mss.0 as f64)).clamp(0.01, 1.0);
        let prior = self.cwnd;
        self.cwnd = (prior * (1.0 - factor)).max(least);
        prior - self.cwnd
    }

    /// Reduces cwnd for a loss (2.4.1).
    fn reduce_for_loss(&mut self, conn: &Conn) {
        let srtt = conn.srtt.unwrap_or(Span::ZERO);
        if let Some(mark) = self.reduction.take().filter(|mark| conn.now.since(mark.at) < self.rtt_virt(srtt)) {
            self.cwnd += mark.by;
        }
        self.reduce(conn, 0.5);
        // Marks in the window of the loss cause no further reduction.
        self.reduction = Some(Reduction { at: conn.now, by: 0.0 });
    }

    /// Returns the fractional cwnd, rounded up and at least 2.
    fn rounded(&self) -> Packets {
        Packets(self.cwnd.ceil() as u64).max(CWND_MIN)
    }

    /// Sets the connection's window to the fractional cwnd, with an increase of at most `acked`, and sets the pacing
    /// rate (2.5.1).
    fn set_window(&self, conn: &Conn, acked: Packets, window: &mut Window) {
        window.cwnd = self.rounded().min(window.cwnd + acked);
        let Some(srtt) = conn.srtt.filter(|srtt| *srtt > Span::ZERO) else { return };
        let gain = if self.cwnd < window.ssthresh.0 as f64 / 2.0 { 2.0 } else { 1.0 };
        let bits = self.cwnd * (conn.mss.0 + HEADERS.0) as f64 * 8.0;
        window.pacing_rate = Rate((gain * bits / srtt.as_secs_f64()).max(RATE_MIN) as u64);
    }
}

impl Controller for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn paces(&self) -> bool {
        true
    }

    fn needs_ecn(&self) -> Option<EcnFeedback> {
        Some(EcnFeedback::Accurate)
    }

    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect1
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, _rng: &mut dyn Rng) {
        self.cwnd = window.cwnd.0 as f64;
        self.round_end = conn.next_bytes;
        self.delivered_ce = conn.delivered_ce;
        self.sample = Counts { delivered: conn.delivered, delivered_ce: conn.delivered_ce, at: conn.now };
        self.set_window(conn, Packets::ZERO, window);
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        let srtt = conn.srtt.unwrap_or(Span::ZERO);
        let marked = conn.delivered_ce.saturating_sub(self.delivered_ce);
        self.delivered_ce = conn.delivered_ce;
        let unmarked = ack.acked.saturating_sub(marked).0;
        let is_lossy = matches!(conn.state, CaState::Recovery | CaState::Loss);
        if unmarked > 0 && conn.is_cwnd_limited && !is_lossy {
            self.grow(unmarked, srtt, window);
        }
        self.update_alpha(conn, window);
        self.set_window(conn, ack.acked, window);
    }

    fn ssthresh(&mut self, conn: &Conn, _window: &Window) -> Packets {
        self.reduce_for_loss(conn);
        self.rounded()
    }

    fn ssthresh_on_mark(&mut self, conn: &Conn, window: &Window) -> Packets {
        let srtt = conn.srtt.unwrap_or(Span::ZERO);
        let is_recent = |past: &Reduction| conn.now.since(past.at) < self.rtt_virt(srtt);
        if self.reduction.as_ref().is_some_and(is_recent) {
            return window.ssthresh;
        }
        let is_first = self.alpha.is_none();
        let alpha = *self.alpha.get_or_insert(self.settings.alpha_init);
        let by = self.reduce(conn, if is_first { 0.5 } else { alpha / 2.0 });
        self.reduction = Some(Reduction { at: conn.now, by });
        self.rounded()
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, _rng: &mut dyn Rng) {
        // For a loss during the response to a mark, the connection does not request a new ssthresh.
        if matches!(next, CaState::Recovery | CaState::Loss) && conn.state == CaState::Cwr {
            self.reduce_for_loss(conn);
            window.ssthresh = self.rounded();
        }
    }

    fn undo(&mut self, _conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        self.cwnd = self.cwnd.max(prior_cwnd.0 as f64);
        window.cwnd.max(prior_cwnd)
    }

    fn max_burst(&self, window: &Window) -> Packets {
        let bytes = (window.pacing_rate.0 / 8) >> BURST_SHIFT;
        Packets(bytes / MSS.0).max(Packets(1))
    }

    fn report(&self, _conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        if let Some(alpha) = self.alpha {
            take("alpha", alpha);
        }
        take("cwnd_fraction_packets", self.cwnd);
    }
}
