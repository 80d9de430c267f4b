//! The state of ECN at the sender; what marks do is in the module `marks`.

use thalweg_cc::EcnFeedback;
use thalweg_units::Ecn;

/// Cause of a reduction of cwnd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Congestion {
    /// A segment was lost.
    Loss,
    /// A segment was marked.
    Mark,
}

/// The state of ECN.
#[derive(Debug, Default)]
pub(super) struct EcnState {
    /// The feedback that both ends have agreed on; none: the connection is not ECN-capable.
    pub feedback: Option<EcnFeedback>,
    /// The ECN field of ECN-capable segments.
    pub codepoint: Ecn,
    /// Whether the next new segment reports a reduction.
    is_cwr_due: bool,
    /// Marked segments that the latest ACK has reported.
    pub ce_segments: u32,
}

impl EcnState {
    /// Returns the ECN field and the CWR flag of a segment that leaves, for the first time or again.
    pub fn stamp(&mut self, is_again: bool) -> (Ecn, bool) {
        match self.feedback {
            None => (Ecn::NotEct, false),
            Some(EcnFeedback::Classic) if is_again => (Ecn::NotEct, false),
            Some(_) if is_again => (self.codepoint, false),
            Some(_) => (self.codepoint, std::mem::take(&mut self.is_cwr_due)),
        }
    }

    /// cwnd is being reduced, which is reported to the receiver.
    pub fn queue_cwr(&mut self) {
        self.is_cwr_due = matches!(self.feedback, Some(EcnFeedback::Classic | EcnFeedback::Dctcp));
    }

    /// The reduction was a mistake.
    pub fn withdraw_cwr(&mut self) {
        self.is_cwr_due = false;
    }
}
