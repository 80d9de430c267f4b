//! The current recovery, or the last one.

use crate::packet::Timestamp;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Time};

/// The current recovery, or the last one.
#[derive(Debug, Default)]
pub(super) struct Episode {
    /// End of the data sent when the current state began.
    pub high_seq: u64,
    /// The left edge when the reduction began; `None` if it cannot be undone.
    pub undo_marker: Option<u64>,
    /// Retransmissions that no D-SACK has proven spurious yet; `None`: nothing was retransmitted.
    pub unproven: Option<u64>,
    /// Timestamp of the first retransmission.
    pub first_resent_at: Option<Timestamp>,
    /// ssthresh before the reduction, as it would be restored; none: the reduction is not to be undone.
    pub prior_ssthresh: Option<Packets>,
    /// Timeouts since the left edge last moved.
    pub timeouts_in_row: u64,
    /// Whether F-RTO is checking the timeout.
    pub is_frto: bool,
}

impl Episode {
    /// D-SACKs have reported `copies` of the retransmissions.
    pub fn forget_retransmissions(&mut self, copies: u64) {
        if let Some(unproven) = self.unproven.as_mut().filter(|unproven| **unproven > 0) {
            *unproven = unproven.saturating_sub(copies);
        }
    }

    /// A segment is retransmitted.
    pub fn on_retransmitted(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(Timestamp::at(now));
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
    }
}

/// Whether the connection lowers cwnd on ACKs in this state.
pub(super) fn is_reducing(state: CaState) -> bool {
    matches!(state, CaState::Cwr | CaState::Recovery)
}
