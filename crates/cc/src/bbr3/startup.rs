//! Startup and Drain (5.3.1, 5.3.2).
//!
//! Startup doubles the rate while the bandwidth grows by at least a quarter per round. The pipe is deemed full after
//! three rounds without such growth, or after a round of recovery in which six ACKs detected losses and more than 2 %
//! were lost; ECN marks can have the same effect (`ecn`). Phase Up uses the same detection of growth.

use super::sample::Sample;
use super::state::{Bbr3, Mode};
use crate::fixed_point::Gain;
use crate::{CaState, Conn, Window};
use rand_core::Rng;
use thalweg_units::Packets;

/// Rounds without growth after which the pipe counts as full.
const ROUNDS: u32 = 3;

/// ACKs with losses in a round that end Startup (2.13, StartupFullLossCnt).
const LOSS_EVENTS: u32 = 6;

impl Bbr3 {
    /// Updates the detection of a full pipe (5.3.1.2, CheckFullBWReached).
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        let is_round_start = self.round.is_start;
        if self.full_pipe.is_now || sample.is_app_limited {
            return;
        }
        if self.variant.grows_at_round_start_only && !is_round_start {
            return;
        }
        if sample.bw >= self.full_pipe.baseline.scale(Gain::FULL_PIPE_GROWTH) {
            self.full_pipe.restart_from(sample.bw);
            return;
        }
        if is_round_start {
            self.full_pipe.rounds += 1;
            self.full_pipe.is_now = self.full_pipe.rounds >= ROUNDS;
            self.full_pipe.is_reached |= self.full_pipe.is_now;
        }
    }

    /// Ends Startup if the loss rate is too high (5.3.1.3, CheckStartupHighLoss).
    pub(super) fn check_startup_loss(&mut self, conn: &Conn, sample: &Sample, window: &Window) {
        if self.full_pipe.is_reached {
            return;
        }
        if sample.newly_lost > Packets::ZERO {
            self.full_pipe.loss_events += 1;
        }
        if !self.signals.is_round_start {
            return;
        }
        let is_frequent = self.full_pipe.loss_events >= LOSS_EVENTS && conn.state == CaState::Recovery;
        if is_frequent && self.is_sample_too_high(sample) {
            self.end_startup_by_congestion(conn, window);
            return;
        }
        self.full_pipe.loss_events = 0;
    }

    /// Marks the pipe as full, and sets the long-term bound to the BDP or the amount delivered in the latest round,
    /// whichever is larger.
    pub(super) fn end_startup_by_congestion(&mut self, conn: &Conn, window: &Window) {
        self.full_pipe.is_reached = true;
        self.recovery.undo.was_startup = true;
        let bdp = self.target_inflight(self.max_bw.max(), Gain::UNIT, conn, window);
        self.long_term = Some(bdp.max(self.signals.latest_inflight));
    }

    /// Leaves Startup when the pipe is full, and Drain when the queue is empty or the variant's maximum number of
    /// rounds is exceeded (5.3.2, CheckDrainDone).
    pub(super) fn check_drain(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        let bdp = |bbr: &Bbr3, window: &Window| bbr.target_inflight(bbr.max_bw.max(), Gain::UNIT, conn, window);
        if self.mode == Mode::Startup && self.full_pipe.is_reached {
            self.mode = Mode::Drain;
            self.full_pipe.drain_round = self.round.count;
            window.ssthresh = bdp(self, window);
            self.signals.reset();
        }
        if self.mode != Mode::Drain {
            return;
        }
        let rounds = self.round.count - self.full_pipe.drain_round;
        let is_overdue = self.variant.max_drain_rounds.is_some_and(|most| rounds > most);
        if is_overdue || self.inflight_at_departure(conn.inflight, conn, window) <= bdp(self, window) {
            self.mode = Mode::ProbeBw;
            self.start_down(conn, rng);
        }
    }
}
