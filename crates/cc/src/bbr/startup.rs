//! Detects whether the pipe is full.
//!
//! Startup increases its rate while the bandwidth grows by a quarter per round. After three rounds without that growth,
//! the pipe counts as full: the growth of the receive window or other traffic may hide bandwidth for a round or two.
//! Application-limited rounds do not count.

use crate::fixed_point::{Bandwidth, Gain};

/// Rounds without growth after which the pipe counts as full.
const ROUNDS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe has been full. Stays set for the rest of the connection.
    pub is_reached: bool,
    /// Bandwidth from which growth is measured.
    baseline: Bandwidth,
    /// Rounds in which the bandwidth grew by less than a quarter, since it last grew by more.
    pub rounds: u32,
}

impl FullPipe {
    /// Handles the start of a round that was not application-limited; `max_bw` is the maximum bandwidth.
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

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("full_bw_reached", u64::from(self.is_reached));
        take("full_bw", self.baseline.raw());
        take("full_bw_cnt", u64::from(self.rounds));
    }

    /// Clears the baseline; the next round sets a new one and restarts the count.
    pub fn forget_baseline(&mut self) {
        self.baseline = Bandwidth::ZERO;
    }

    /// Restarts the detection, unless the pipe has been full.
    pub fn restart(&mut self) {
        self.baseline = Bandwidth::ZERO;
        self.rounds = 0;
    }
}
