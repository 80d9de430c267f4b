//! Undoes spurious reductions of cwnd, where no segment was lost.
//!
//! Two kinds of evidence are used besides F-RTO (`recovery`). Timestamps (Eifel, RFC 3522): the ACK that covers a
//! retransmitted segment echoes a time before the retransmission, so it was the original that arrived. D-SACKs (RFC
//! 3708): every retransmission was reported as a duplicate. Timestamps have a resolution of 1 ms: a retransmission
//! within the same millisecond cannot be distinguished from the original.

use super::Sender;
use super::facts::AckFacts;
use rand_core::Rng;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Time};

impl Sender {
    /// Whether the ACK is for an original: the echoed timestamp precedes the first retransmission, or nothing was
    /// retransmitted.
    fn is_original_delivered(&self, facts: &AckFacts) -> bool {
        self.episode.first_resent_at.is_none_or(|first| facts.tsecr < first)
    }

    fn may_undo(&self, facts: &AckFacts) -> bool {
        self.episode.undo_marker.is_some() && (self.episode.unproven == Some(0) || self.is_original_delivered(facts))
    }

    /// Restores cwnd and ssthresh, if ssthresh was saved for an undo. `is_nothing_lost`: also clears all loss marks.
    fn undo_reduction(&mut self, now: Time, is_nothing_lost: bool) {
        if is_nothing_lost {
            self.board.unmark_all_lost();
            self.rack.on_unmarked(&self.board);
        }
        if let Some(prior_ssthresh) = self.episode.prior_ssthresh {
            let conn = self.conn(now);
            self.window.cwnd = self.cc.undo(&conn, self.prr.prior_cwnd, &self.window);
            if prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = prior_ssthresh;
                self.ecn.withdraw_cwr();
            }
            self.obey_hold();
        }
        self.counters.undos += 1;
        self.usage.cwnd_stamp = now;
        self.episode.undo_marker = None;
        self.rack.look_again();
    }

    /// Sets the state to Open at the end of a recovery. Undoes the reduction if it was spurious.
    pub(super) fn try_undo_recovery(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts) {
        if self.may_undo(facts) {
            self.undo_reduction(now, false);
        } else {
            self.rack.on_recovered();
        }
        self.set_state(now, rng, CaState::Open);
    }

    /// Undoes the reduction in state Loss, if it was spurious. `is_proven`: F-RTO has shown that the timeout was
    /// spurious. Returns whether it did.
    pub(super) fn try_undo_loss(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts, is_proven: bool) -> bool {
        if !is_proven && !self.may_undo(facts) {
            return false;
        }
        self.undo_reduction(now, true);
        self.episode.timeouts_in_row = 0;
        self.set_state(now, rng, CaState::Open);
        true
    }

    /// Undoes the reduction if D-SACKs have arrived for all retransmissions. Returns whether it did.
    pub(super) fn try_undo_dsack(&mut self, now: Time) -> bool {
        if self.episode.undo_marker.is_none() || self.episode.unproven != Some(0) {
            return false;
        }
        self.rack.on_dsack_undo();
        self.undo_reduction(now, false);
        true
    }

    /// Handles an ACK that advances the left edge during recovery, but not to its end. If an original filled the hole,
    /// undoes the reduction; while retransmissions are in flight, returns true instead: nothing more is retransmitted
    /// for now.
    pub(super) fn try_undo_partial(&mut self, now: Time, rng: &mut dyn Rng, prior_una: u64, facts: &AckFacts) -> bool {
        if self.episode.undo_marker.is_none() || !self.is_original_delivered(facts) {
            return false;
        }
        // The hole was filled by a delayed segment.
        self.rack.on_reordering(prior_una, self.board.sacked_end());
        if self.board.retrans_out() > 0 {
            return true;
        }
        self.forget_retransmissions_unless_any();
        self.undo_reduction(now, true);
        self.try_keep_open(now, rng);
        false
    }

    /// Records cwnd before the current reduction.
    pub(super) fn begin_reduction_account(&mut self) {
        let prior: Packets = self.window.cwnd;
        self.prr.begin(prior);
    }
}
