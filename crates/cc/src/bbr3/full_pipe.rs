//! Detects whether the pipe is full.

use crate::fixed_point::Bandwidth;

#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe has ever been full.
    pub is_reached: bool,
    /// Whether the pipe has been full since the last restart.
    pub is_now: bool,
    /// Bandwidth from which growth is measured.
    pub baseline: Bandwidth,
    /// Rounds in which the bandwidth grew by less than a quarter, since the last restart.
    pub rounds: u32,
    /// ACKs with losses in the round.
    pub loss_events: u32,
    /// Round in which Drain began.
    pub drain_round: u64,
}

impl FullPipe {
    /// Restarts the detection (5.3.1.2, ResetFullBW).
    pub fn restart(&mut self) {
        self.restart_from(Bandwidth::ZERO);
    }

    /// Restarts the detection with `baseline` as the reference for growth.
    pub fn restart_from(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.rounds = 0;
        self.is_now = false;
    }
}
