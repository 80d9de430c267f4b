//! The phases of ProbeBW, and when each one ends (5.3.3).
//!
//! ```text
//!   phase   Down           Cruise       Refill     Up
//!   gain    0.9            1            1          1.25
//!   until   queue is empty next probe   one round  no growth for three rounds, or too much loss
//!                          is due
//! ```
//!
//! The next probe is due 2 to 3 s after Down began, or after the number of rounds between two losses of a Reno flow
//! with this BDP (at most 63), whichever is earlier. After a probe with too much loss, the next Up already ends when
//! the long-term bound is reached.

use super::cycle::{AckPhase, Phase};
use super::sample::Sample;
use super::state::Bbr3;
use crate::fixed_point::Gain;
use crate::{CaState, Conn, Window};
use rand_core::Rng;
use thalweg_units::{Packets, Span};

/// Maximum number of rounds between two probes (5.3.3.8).
const MAX_ROUNDS: u64 = 63;

/// Time from the start of Down to the next probe, unless the rounds make it due earlier; a random part of
/// [`RANDOM_WAIT_US`] is added.
const MIN_WAIT: Span = Span::from_secs(2);
const RANDOM_WAIT_US: u64 = 1_000_000;

/// A probe starts a random number of rounds early, from 0 to this minus 1.
const RANDOM_ROUNDS: u64 = 2;

fn below(limit: u64, rng: &mut dyn Rng) -> u64 {
    (u64::from(rng.next_u32()) * limit) >> 32
}

impl Bbr3 {
    fn enter_phase(&mut self, phase: Phase) {
        self.cycle.phase = phase;
        self.is_at_target = false;
    }

    /// Enters Down: sends below the bandwidth, to drain the queue and to leave capacity to other flows (5.3.3.1).
    pub(super) fn start_down(&mut self, conn: &Conn, rng: &mut dyn Rng) {
        self.signals.reset();
        self.cycle.acked_per_increment = None;
        self.round.since_probe = below(RANDOM_ROUNDS, rng);
        self.cycle.wait = MIN_WAIT + Span::from_micros(below(RANDOM_WAIT_US, rng));
        self.cycle.start = conn.now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(conn);
        self.enter_phase(Phase::Down);
    }

    /// Enters Cruise: sends at the bandwidth (5.3.3.2).
    pub(super) fn start_cruise(&mut self) {
        if self.variant.cruises_below_long_term {
            if let (Some(short_term), Some(long_term)) = (&mut self.short_term.inflight, self.long_term) {
                *short_term = long_term.min(*short_term);
            }
        }
        self.enter_phase(Phase::Cruise);
    }

    /// Enters Refill: fills the pipe for a round before the probe, without the short-term model (5.3.3.3).
    pub(super) fn start_refill(&mut self, conn: &Conn, up_rounds: u32) {
        self.short_term.reset();
        self.cycle.up_rounds = up_rounds;
        self.cycle.up_acked = Packets::ZERO;
        self.cycle.was_cautious = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.round.restart(conn);
        self.enter_phase(Phase::Refill);
    }

    /// Enters Up: sends above the bandwidth (5.3.3.5).
    fn start_up(&mut self, conn: &Conn, sample: &Sample, window: &Window) {
        self.cycle.is_probe_sample = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(conn);
        self.cycle.start = conn.now;
        self.full_pipe.restart_from(sample.bw);
        self.enter_phase(Phase::Up);
        self.raise_long_term_slope(window);
    }

    /// Begins the next phase if this one is complete (5.3.3.9, UpdateProbeBWCyclePhase).
    pub(super) fn update_cycle(&mut self, conn: &Conn, sample: &Sample, window: &Window, rng: &mut dyn Rng) {
        if !self.full_pipe.is_reached || self.adapt_long_term(conn, sample, window, rng) || !self.is_in_probe_bw() {
            return;
        }
        match self.cycle.phase {
            Phase::Cruise => {
                self.refill_when_due(conn, window);
            }
            Phase::Refill if self.round.is_start => self.start_up(conn, sample, window),
            Phase::Refill => {}
            Phase::Up => {
                if self.is_probe_over(conn, sample, window) {
                    self.cycle.was_too_high = false;
                    self.start_down(conn, rng);
                }
            }
            Phase::Down => {
                if !self.refill_when_due(conn, window) && self.is_time_to_cruise(conn, sample, window) {
                    self.start_cruise();
                }
            }
        }
    }

    /// Enters Refill if the next probe is due (5.3.3.8.3, IsTimeToProbeBW), or if marks but no losses have occurred
    /// since Down began and the state is Open. Returns whether it did.
    fn refill_when_due(&mut self, conn: &Conn, window: &Window) -> bool {
        let has_marks_ceased = self.ecn.is_eligible && self.signals.is_mark_in_cycle && !self.signals.is_loss_in_cycle;
        if has_marks_ceased && conn.state == CaState::Open {
            let up_rounds = self.reprobe_rounds();
            self.start_refill(conn, up_rounds);
            return true;
        }
        let rounds = MAX_ROUNDS.min(self.response_target(conn, window).0);
        let is_due = self.cycle.has_waited(conn.now) || self.round.since_probe >= rounds;
        if is_due {
            self.start_refill(conn, 0);
        }
        is_due
    }

    /// Whether Down has drained the queue and left the headroom (5.3.3.9, IsTimeToCruise).
    fn is_time_to_cruise(&self, conn: &Conn, sample: &Sample, window: &Window) -> bool {
        let inflight = self.judged_inflight(conn, sample, window);
        let has_headroom = self.long_term_with_headroom().is_none_or(|bound| inflight <= bound);
        has_headroom && inflight <= self.target_inflight(self.max_bw.max(), Gain::UNIT, conn, window)
    }

    /// Whether Up is complete (5.3.3.9, IsTimeToGoDown).
    fn is_probe_over(&mut self, conn: &Conn, sample: &Sample, window: &Window) -> bool {
        let inflight = self.judged_inflight(conn, sample, window);
        let is_at_bound = |volume: Packets, bound: Option<Packets>| bound.is_some_and(|bound| volume >= bound);
        if self.cycle.was_too_high && is_at_bound(inflight, self.long_term) {
            self.cycle.was_cautious = true;
            return true;
        }
        if conn.is_cwnd_exhausted && is_at_bound(window.cwnd, self.long_term) {
            // The bound limits the bandwidth, so its growth is not conclusive.
            self.full_pipe.restart_from(sample.bw);
            return false;
        }
        self.full_pipe.is_now
    }

    /// Returns the packets in flight by which the end of a phase is determined.
    fn judged_inflight(&self, conn: &Conn, sample: &Sample, window: &Window) -> Packets {
        if self.variant.looks_ahead {
            self.inflight_at_departure(sample.prior_inflight, conn, window)
        } else {
            conn.inflight
        }
    }
}
