//! ECN state of the sender. The module `marks` describes the response to marks.

use thalweg_cc::EcnFeedback;
use thalweg_units::Ecn;

/// Cause of a reduction of cwnd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Congestion {
    Loss,
    Mark,
}

#[derive(Debug, Default)]
pub(super) struct EcnState {
    /// The feedback that both ends have negotiated; `None` if the connection is not ECN-capable.
    pub feedback: Option<EcnFeedback>,
    /// The ECN field of ECN-capable segments.
    pub codepoint: Ecn,
    /// Whether the next new segment carries CWR.
    is_cwr_due: bool,
    /// Count of marked segments in the latest ACK that was not overtaken, with accurate feedback.
    pub ce_segments: u32,
}

impl EcnState {
    /// Returns the ECN field and the CWR flag for a segment that is sent. `is_again`: it is a retransmission.
    pub fn stamp(&mut self, is_again: bool) -> (Ecn, bool) {
        match self.feedback {
            None => (Ecn::NotEct, false),
            Some(EcnFeedback::Classic) if is_again => (Ecn::NotEct, false),
            Some(_) if is_again => (self.codepoint, false),
            Some(_) => (self.codepoint, std::mem::take(&mut self.is_cwr_due)),
        }
    }

    /// Requests that the next new segment carry CWR, because cwnd is being reduced; not with accurate feedback.
    pub fn queue_cwr(&mut self) {
        self.is_cwr_due = matches!(self.feedback, Some(EcnFeedback::Classic | EcnFeedback::Dctcp));
    }

    /// Cancels a pending CWR.
    pub fn withdraw_cwr(&mut self) {
        self.is_cwr_due = false;
    }
}
