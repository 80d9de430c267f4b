//! Detects whether the pipe is full.
//!
//! Startup increases its rate while the bandwidth grows by a quarter per round. After three rounds without that growth,
//! the pipe counts as full: one round in which the queue fills, and two in case the growth of the receive window,
//! another flow or a burst of ACKs hid the bandwidth. Rounds in which the application limited the rate do not count.

use crate::fixed_point::{Bandwidth, Gain};

/// Rounds without growth after which the pipe counts as full.
const ROUNDS: u32 = 3;

/// Detects the end of the growth.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe was found to be full, which holds for the rest of the connection.
    pub is_reached: bool,
    /// The bandwidth that growth is measured from.
    baseline: Bandwidth,
    /// Rounds since it grew.
    pub rounds: u32,
}

impl FullPipe {
    /// A round began, which the application did not limit; the maximum bandwidth is `max_bw`.
    pub fn on_round(&mut self, max_bw: Bandwidth) {
        if self.is_reached {
            return;
        }
        if max_bw >= self.baseline.scale(Gain::FULL_PIPE_GROWTH) {
            self.baseline = max_bw;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.is_reached = self.rounds >= ROUNDS;
    }

    /// The members of `struct bbr` that correspond to this state.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("full_bw_reached", u64::from(self.is_reached));
        take("full_bw", self.baseline.raw());
        take("full_bw_cnt", u64::from(self.rounds));
    }

    /// The next round sets a new baseline, and counting restarts at zero.
    pub fn forget_baseline(&mut self) {
        self.baseline = Bandwidth::ZERO;
    }

    /// Restarts the search, unless it is over.
    pub fn restart(&mut self) {
        self.baseline = Bandwidth::ZERO;
        self.rounds = 0;
    }
}
