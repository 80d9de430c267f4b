//! How far the search for a full pipe is.

use crate::fixed_point::Bandwidth;

/// The search for the end of the growth.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe was ever found to be full.
    pub is_reached: bool,
    /// Whether it was since the search was last restarted.
    pub is_now: bool,
    /// The bandwidth that growth is measured from.
    pub baseline: Bandwidth,
    /// Rounds since it grew.
    pub rounds: u32,
    /// ACKs with losses in the round.
    pub loss_events: u32,
    /// Drain began in this round.
    pub drain_round: u64,
}

impl FullPipe {
    /// The search begins anew (5.3.1.2, ResetFullBW).
    pub fn restart(&mut self) {
        self.restart_from(Bandwidth::ZERO);
    }

    /// The search begins anew, and growth is measured from `baseline`.
    pub fn restart_from(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.rounds = 0;
        self.is_now = false;
    }
}
