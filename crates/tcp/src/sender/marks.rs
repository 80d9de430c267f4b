//! Explicit congestion notification (RFC 3168): which segments are ECN-capable, and the response to a reported mark.
//!
//! The connection is ECN-capable if the SYN requested it and the SYN-ACK agreed; a repeated SYN does not request it
//! (RFC 3168, section 6.1.1.1). New segments carry the codepoint of the controller, ECT(0) for most. Retransmissions
//! are not ECN-capable with classic feedback (section 6.1.5); they are with DCTCP's, as in Linux, and with accurate
//! feedback.
//!
//! An ACK that reports marks lowers cwnd once per round trip: the state becomes Cwr, the controller sets ssthresh, and
//! cwnd falls to ssthresh by proportional rate reduction, unless the controller governs recovery. A reduction in which
//! marks were reported is never undone. In recovery, marks cause no further reduction.
//!
//! With [`EcnFeedback::Accurate`] ACKs carry the number of marked segments, and neither ECE nor CWR is used.
//!
//! Not modelled: ECN-capable pure ACKs and handshake packets, as Linux sends with DCTCP.

use super::Sender;
use super::ecn::Congestion;
use super::facts::AckFacts;
use crate::packet::AckPacket;
use rand_core::Rng;
use thalweg_cc::{CaState, EcnFeedback};
use thalweg_units::Time;

impl Sender {
    /// Returns whether an ACK that was not overtaken reports marks.
    pub(super) fn take_marks(&mut self, packet: &AckPacket) -> bool {
        match self.ecn.feedback {
            None => false,
            Some(EcnFeedback::Classic | EcnFeedback::Dctcp) => packet.is_ece,
            Some(EcnFeedback::Accurate) => {
                let marked = packet.ce_segments.wrapping_sub(self.ecn.ce_segments);
                self.ecn.ce_segments = packet.ce_segments;
                self.counters.marked += u64::from(marked);
                marked > 0
            }
        }
    }

    /// Counts the segments that an ACK with ECE has delivered (Linux: `tp->delivered_ce`). With accurate feedback,
    /// [`Sender::take_marks`] has counted the marked ones.
    pub(super) fn count_marked(&mut self, delivered: u64) {
        if self.ecn.feedback != Some(EcnFeedback::Accurate) {
            self.counters.marked += delivered;
        }
    }

    /// Starts a reduction of cwnd if the ACK reports a mark, unless a reduction or recovery is in progress.
    pub(super) fn reduce_for_mark(&mut self, now: Time, rng: &mut dyn Rng, facts: &AckFacts) {
        if !facts.is_marked || !matches!(self.state, CaState::Open | CaState::Disorder) {
            return;
        }
        self.episode.prior_ssthresh = None;
        self.episode.undo_marker = None;
        self.begin_reduction(now, Congestion::Mark);
        self.set_state(now, rng, CaState::Cwr);
    }
}
