//! Detects whether the pipe is full.

use crate::fixed_point::Bandwidth;

/// Detects the end of the growth.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe was ever found to be full.
    pub is_reached: bool,
    /// Whether it was found to be full since the last restart.
    pub is_now: bool,
    /// The bandwidth that growth is measured from.
    pub baseline: Bandwidth,
    /// Rounds since it grew.
    pub rounds: u32,
    /// ACKs with losses in the round.
    pub loss_events: u32,
    /// Round in which Drain began.
    pub drain_round: u64,
}

impl FullPipe {
    /// Restarts the search (5.3.1.2, ResetFullBW).
    pub fn restart(&mut self) {
        self.restart_from(Bandwidth::ZERO);
    }

    /// Restarts the search with `baseline` as the reference for growth.
    pub fn restart_from(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.rounds = 0;
        self.is_now = false;
    }
}
