//! The congestion window (5.6.4).
//!
//! cwnd grows by the number of acknowledged packets towards its target: cwnd_gain times the BDP, with headroom for
//! aggregated ACKs, and at least three bursts. Once the pipe is full, the target is also its upper bound. Losses lower
//! cwnd through the bounds of the model.

use super::cycle::Phase;
use super::recovery::Undo;
use super::state::{Bbr3, MIN_CWND, Mode};
use crate::fixed_point::Gain;
use crate::{CaState, Conn, Window};
use thalweg_units::Packets;

/// cwnd in ProbeRTT, in BDPs (2.16.2, ProbeRTTCwndGain).
const PROBE_RTT_GAIN: Gain = Gain::hundredths(50);

/// Returns the higher of two bounds; `None` means unbounded.
fn higher<T: Ord>(left: Option<T>, right: Option<T>) -> Option<T> {
    Some(left?.max(right?))
}

impl Bbr3 {
    /// Saves cwnd for the time after recovery or ProbeRTT (SaveCwnd).
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let is_recovering = matches!(self.recovery.prior_state, CaState::Recovery | CaState::Loss);
        let kept = if is_recovering || self.mode == Mode::ProbeRtt { self.recovery.prior_cwnd } else { Packets::ZERO };
        self.recovery.prior_cwnd = kept.max(window.cwnd);
    }

    /// Saves the state at a loss or at the start of a recovery, either of which may be spurious (SaveStateUponLoss). In
    /// the draft's variant, the values saved at the first loss of a round are kept, since the response to that loss may
    /// already have taken effect.
    pub(super) fn save_for_undo(&mut self, window: &Window) {
        self.save_cwnd(window);
        if self.variant.undoes_state && self.recovery.undo.round == Some(self.round.count) {
            return;
        }
        self.recovery.undo = Undo {
            bw: self.short_term.bw,
            short_term: self.short_term.inflight,
            long_term: self.long_term,
            round: Some(self.round.count),
            was_startup: false,
            was_up: false,
        };
    }

    /// Undoes the response to a spurious loss (5.5.11.2, HandleSpuriousLossDetection). Returns cwnd.
    pub(super) fn undo_loss(&mut self, conn: &Conn) -> Packets {
        self.full_pipe.restart();
        self.signals.is_loss_in_round = false;
        self.short_term.bw = higher(self.short_term.bw, self.recovery.undo.bw);
        self.short_term.inflight = higher(self.short_term.inflight, self.recovery.undo.short_term);
        self.long_term = higher(self.long_term, self.recovery.undo.long_term);
        self.is_at_target = false;
        if self.variant.undoes_state {
            self.undo_state(conn);
        }
        self.recovery.prior_cwnd
    }

    fn undo_state(&mut self, conn: &Conn) {
        let undo = &mut self.recovery.undo;
        let (was_startup, was_up) = (std::mem::take(&mut undo.was_startup), std::mem::take(&mut undo.was_up));
        if was_startup && self.mode != Mode::Startup {
            self.full_pipe.is_reached = false;
            if self.mode != Mode::ProbeRtt {
                self.mode = Mode::Startup;
            }
        } else if was_up && self.mode == Mode::ProbeBw && self.cycle.phase != Phase::Up {
            self.start_refill(conn, 0);
        }
    }

    /// Sets cwnd after an ACK (5.6.4.6).
    pub(super) fn set_cwnd(&mut self, conn: &Conn, acked: Packets, window: &mut Window) {
        if acked > Packets::ZERO {
            let bw = self.bandwidth();
            let target = self.bdp(bw, self.cwnd_gain) + self.aggregation.room(bw, Gain::UNIT);
            let target = self.with_bursts(target, conn, window);
            window.cwnd = self.towards(target, acked, window.cwnd).max(MIN_CWND);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    fn towards(&mut self, target: Packets, acked: Packets, cwnd: Packets) -> Packets {
        if self.full_pipe.is_reached {
            self.is_at_target = cwnd + acked >= target;
            return (cwnd + acked).min(target);
        }
        self.is_at_target = cwnd >= target && cwnd >= self.initial_cwnd + self.initial_cwnd;
        if self.is_at_target { cwnd } else { cwnd + acked }
    }

    /// Returns cwnd in ProbeRTT (5.6.4.5, ProbeRTTCwnd).
    pub(super) fn probe_rtt_cwnd(&self) -> Packets {
        self.bdp(self.bandwidth(), PROBE_RTT_GAIN).max(MIN_CWND)
    }

    /// Keeps cwnd within the bounds of the model (5.6.4.7, BoundCwndForModel).
    pub(super) fn bound_cwnd(&mut self, window: &mut Window) {
        self.unbounded_cwnd = window.cwnd;
        let long_term = match self.mode {
            Mode::ProbeBw if self.cycle.phase != Phase::Cruise => self.long_term,
            Mode::ProbeBw | Mode::ProbeRtt => self.long_term_with_headroom(),
            Mode::Startup | Mode::Drain => None,
        };
        let bound = long_term.unwrap_or(Packets::MAX).min(self.short_term.inflight.unwrap_or(Packets::MAX));
        window.cwnd = window.cwnd.min(bound.max(MIN_CWND));
    }
}
