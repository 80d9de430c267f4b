//! State of the current or most recent recovery.

use crate::packet::Timestamp;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Time};

#[derive(Debug, Default)]
pub(super) struct Episode {
    /// Recovery or Loss ends when all data below this segment is acknowledged (Linux: `tp->high_seq`).
    pub high_seq: u64,
    /// The left edge when the recovery began; `None` if no undo is possible.
    pub undo_marker: Option<u64>,
    /// Retransmissions that no D-SACK has reported as spurious yet; `None` if nothing was retransmitted.
    pub unproven: Option<u64>,
    /// Timestamp of the first retransmission.
    pub first_resent_at: Option<Timestamp>,
    /// ssthresh before the reduction, for an undo; `None` if the reduction must not be undone.
    pub prior_ssthresh: Option<Packets>,
    /// Number of timeouts since the left edge last advanced, or since a timeout was undone.
    pub timeouts_in_row: u64,
    /// Whether F-RTO is checking whether the timeout was spurious.
    pub is_frto: bool,
}

impl Episode {
    /// Subtracts `copies` retransmissions that D-SACKs have reported.
    pub fn forget_retransmissions(&mut self, copies: u64) {
        if let Some(unproven) = self.unproven.as_mut().filter(|unproven| **unproven > 0) {
            *unproven = unproven.saturating_sub(copies);
        }
    }

    /// Records a retransmission.
    pub fn on_retransmitted(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(Timestamp::at(now));
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
    }
}

/// Whether a reduction of cwnd is in progress in this state (Linux: `tcp_in_cwnd_reduction`).
pub(super) fn is_reducing(state: CaState) -> bool {
    matches!(state, CaState::Cwr | CaState::Recovery)
}
