//! The state of loss recovery.
//!
//! ```text
//!            out of order            loss found
//!    Open ───────────────► Disorder ───────────► Recovery
//!     ▲ ▲                     │  ▲                  │ │
//!     │ └─────────────────────┘  └──── undone ──────┘ │ timeout
//!     │         all acknowledged up to high_seq       ▼
//!     └───────────────────────────────────────────── Loss
//! ```
//!
//! A timeout leads from every state to Loss. A mark leads from Open and Disorder to Cwr (`marks`), which ends when data
//! beyond `high_seq` is acknowledged, and may turn into Recovery.
//!
//! F-RTO (RFC 5682, the SACK version) checks a timeout outside of recovery, or one that repeats the previous one: after
//! the first retransmission new segments are sent, and if a segment sent only once, before the timeout, arrives, the
//! timeout was spurious.

use super::ecn::Congestion;
use super::episode::is_reducing;
use super::facts::AckFacts;
use super::work::{Push, Rexmit};
use super::{Sender, TIMEOUT_MIN, Timer};
use rand_core::Rng;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

impl Sender {
    /// Updates the state of recovery after an ACK.
    pub(super) fn alert(&mut self, now: Time, rng: &mut dyn Rng, prior_una: u64, facts: &mut AckFacts) {
        if facts.is_marked {
            self.episode.prior_ssthresh = None;
        }
        self.leave_finished_state(now, rng, facts);
        match self.state {
            CaState::Recovery => {
                if facts.is_advancing && self.try_undo_partial(now, rng, prior_una, facts) {
                    return;
                }
                if self.try_undo_dsack(now) {
                    self.try_to_open(now, rng, facts);
                }
                self.find_losses(now, rng, facts);
                if self.state != CaState::Recovery {
                    if self.board.lost_out() == 0 {
                        return;
                    }
                    self.enter_recovery(now, rng, facts.is_marked);
                }
            }
            CaState::Loss => {
                self.process_loss(now, rng, facts);
                self.find_losses(now, rng, facts);
                if self.state != CaState::Open && !facts.is_resent_lost {
                    return;
                }
                if !self.recover_if_lost(now, rng, facts) {
                    return;
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if !self.recover_if_lost(now, rng, facts) {
                    return;
                }
            }
        }
        self.request_retransmission();
    }

    fn leave_finished_state(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts) {
        if self.state == CaState::Open {
            self.episode.first_resent_at = None;
            return;
        }
        if self.board.una() < self.episode.high_seq {
            return;
        }
        match self.state {
            CaState::Cwr if self.board.una() != self.episode.high_seq => {
                self.end_reduction(now);
                self.set_state(now, rng, CaState::Open);
            }
            CaState::Recovery => {
                self.try_undo_recovery(now, rng, facts);
                self.end_reduction(now);
            }
            _ => {}
        }
    }

    /// Enters recovery if segments are lost; otherwise tries to return to Open. Returns whether it entered recovery.
    fn recover_if_lost(&mut self, now: Time, rng: &mut dyn Rng, facts: &mut AckFacts) -> bool {
        if matches!(self.state, CaState::Open | CaState::Disorder) {
            self.try_undo_dsack(now);
        }
        self.find_losses(now, rng, facts);
        if self.board.lost_out() == 0 {
            self.try_to_open(now, rng, facts);
            return false;
        }
        self.enter_recovery(now, rng, facts.is_marked);
        true
    }

    /// Runs RACK, and sets the timer for segments that may still arrive.
    fn find_losses(&mut self, now: Time, rng: &mut dyn Rng, facts: &mut AckFacts) {
        if self.board.packets_out() == 0 {
            return;
        }
        let resent_before = self.board.retrans_out();
        let window = self.reordering_window();
        if let Some(wait) = self.rack.detect_if_advanced(now, &mut self.board, window) {
            let wait = (wait + TIMEOUT_MIN).min(self.rtt.rto());
            self.set_timer(now, Timer::Reordering, wait);
            facts.is_timer_due = false;
        }
        facts.is_resent_lost |= self.board.retrans_out() < resent_before;
        self.report_losses(now, rng);
    }

    pub(super) fn reordering_window(&self) -> Span {
        let is_recovering = matches!(self.state, CaState::Recovery | CaState::Loss);
        self.rack.window(self.board.sacked_out(), is_recovering, self.rtt.min_rtt(), self.rtt.srtt())
    }

    /// Returns ssthresh, raised to three quarters of cwnd unless cwnd is being reduced (Linux: `tcp_current_ssthresh`).
    pub(super) fn current_ssthresh(&self) -> Packets {
        if is_reducing(self.state) {
            return self.window.ssthresh;
        }
        self.window.ssthresh.max(Packets(self.window.cwnd.0 / 2 + self.window.cwnd.0 / 4))
    }

    /// Enters fast recovery. `is_marked`: the ACK reports marks, so the reduction is never undone.
    pub(super) fn enter_recovery(&mut self, now: Time, rng: &mut dyn Rng, is_marked: bool) {
        self.counters.recoveries += 1;
        // The first retransmission of an earlier recovery proves nothing about this one.
        self.forget_retransmissions_unless_any();
        self.episode.prior_ssthresh = None;
        self.begin_undo_account();
        if !is_reducing(self.state) {
            self.episode.prior_ssthresh = (!is_marked).then(|| self.current_ssthresh());
            self.begin_reduction(now, Congestion::Loss);
        }
        self.set_state(now, rng, CaState::Recovery);
    }

    fn begin_undo_account(&mut self) {
        self.episode.undo_marker = Some(self.board.una());
        let probe_copies = u64::from(self.probe.as_ref().is_some_and(|probe| probe.is_copy));
        let copies = self.board.retrans_out() + probe_copies;
        self.episode.unproven = (copies > 0).then_some(copies);
    }

    /// Starts the reduction of cwnd to the controller's ssthresh.
    pub(super) fn begin_reduction(&mut self, now: Time, congestion: Congestion) {
        self.episode.high_seq = self.board.next();
        self.probe = None;
        self.begin_reduction_account();
        let conn = self.conn(now);
        self.window.ssthresh = match congestion {
            Congestion::Loss => self.cc.ssthresh(&conn, &self.window),
            Congestion::Mark => self.cc.ssthresh_on_mark(&conn, &self.window),
        };
        self.ecn.queue_cwr();
    }

    /// Sets cwnd to ssthresh at the end of a reduction, unless it was undone or the controller governs recovery.
    pub(super) fn end_reduction(&mut self, now: Time) {
        if self.is_governed {
            return;
        }
        let is_standing = self.state == CaState::Cwr || self.episode.undo_marker.is_some();
        if self.window.ssthresh != Packets::MAX && is_standing {
            self.window.cwnd = self.window.ssthresh.max(Packets(1));
            self.usage.cwnd_stamp = now;
        }
    }

    fn try_to_open(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts) {
        self.forget_retransmissions_unless_any();
        self.reduce_for_mark(now, rng, facts);
        if self.state != CaState::Cwr {
            self.try_keep_open(now, rng);
        }
    }

    /// Clears the time of the first retransmission, unless a retransmission is in flight or the first outstanding
    /// segment was retransmitted.
    pub(super) fn forget_retransmissions_unless_any(&mut self) {
        if !self.is_any_resent() {
            self.episode.first_resent_at = None;
        }
    }

    fn is_any_resent(&self) -> bool {
        let is_head_resent =
            |head: &super::scoreboard::Segment| head.flags.has(super::scoreboard::Flags::EVER_RETRANSMITTED);
        self.board.retrans_out() > 0 || self.board.head().is_some_and(is_head_resent)
    }

    /// Sets the state to Open if everything is in order, otherwise to Disorder.
    pub(super) fn try_keep_open(&mut self, now: Time, rng: &mut dyn Rng) {
        let is_in_order = self.board.sacked_out() + self.board.lost_out() == 0 && !self.is_any_resent();
        let next = if is_in_order { CaState::Open } else { CaState::Disorder };
        if self.state != next {
            self.set_state(now, rng, next);
            self.episode.high_seq = self.board.next();
        }
    }

    /// Handles an ACK in state Loss.
    fn process_loss(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts) {
        let is_over = self.board.una() >= self.episode.high_seq;
        if facts.is_advancing && self.try_undo_loss(now, rng, facts, false) {
            return;
        }
        if self.episode.is_frto {
            if facts.is_original_acked && self.try_undo_loss(now, rng, facts, true) {
                return;
            }
            let is_duplicate =
                !facts.is_overtaken && !facts.is_advancing && !facts.is_not_duplicate() && !facts.is_dsack;
            if self.board.next() > self.episode.high_seq {
                if facts.is_data_sacked || is_duplicate {
                    self.episode.is_frto = false;
                }
            } else if facts.is_advancing && !is_over {
                self.episode.high_seq = self.board.next();
                // Sends new data and waits for its ACKs, instead of retransmitting data that may not be lost.
                if self.has_sendable_data() {
                    self.work.rexmit = Rexmit::New;
                    return;
                }
                self.episode.is_frto = false;
            }
        }
        if is_over {
            self.try_undo_recovery(now, rng, facts);
            return;
        }
        self.request_retransmission();
    }

    pub(super) fn on_retransmission_timeout(&mut self, now: Time, rng: &mut dyn Rng) {
        if self.board.packets_out() == 0 {
            self.timer = None;
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now, rng);
        self.episode.timeouts_in_row += 1;
        self.work.head = true;
        self.work.rexmit = Rexmit::None;
        self.work.push = Push::Nothing;
        self.rtt.back_off();
        self.set_timer(now, Timer::Retransmission, self.rtt.rto());
    }

    fn enter_loss(&mut self, now: Time, rng: &mut dyn Rng) {
        let is_new = !matches!(self.state, CaState::Recovery | CaState::Loss);
        let is_repeated = self.episode.timeouts_in_row > 0;
        self.mark_overdue_lost(now);
        self.report_losses(now, rng);
        // ssthresh is not reduced again if the timeout repeats the previous one, or if it occurs before the data of a
        // reduction in Cwr or Recovery is acknowledged.
        if matches!(self.state, CaState::Open | CaState::Disorder)
            || self.episode.high_seq <= self.board.una()
            || (self.state == CaState::Loss && !is_repeated)
        {
            self.episode.prior_ssthresh = Some(self.current_ssthresh());
            self.begin_reduction_account();
            let conn = self.conn(now);
            self.window.ssthresh = self.cc.ssthresh(&conn, &self.window);
            self.cc.on_timeout(&conn, &mut self.window);
            self.begin_undo_account();
        }
        self.window.cwnd = self.board.in_flight() + Packets(1);
        self.usage.cwnd_stamp = now;
        let is_disordered = matches!(self.state, CaState::Open | CaState::Disorder);
        if is_disordered && self.board.sacked_out() >= super::rack::DUP_THRESHOLD {
            self.rack.reset_reordering_degree();
        }
        self.set_state(now, rng, CaState::Loss);
        self.episode.high_seq = self.board.next();
        self.probe = None;
        self.ecn.queue_cwr();
        self.episode.is_frto = is_new || is_repeated;
    }

    /// Marks the first segment as lost, and the others unless they were sent so recently that their ACK cannot have
    /// arrived.
    fn mark_overdue_lost(&mut self, now: Time) {
        let una = self.board.una();
        for seq in una..self.board.next() {
            if seq == una || self.rack.is_overdue(now, self.board.segment(seq).sent_at) {
                self.board.mark_lost(seq);
            }
        }
    }
}
