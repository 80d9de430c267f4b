//! Is the pipe full?
//!
//! Startup sends ever faster while the bandwidth grows by a quarter per round. When it has not for three rounds, the
//! pipe is deemed full: one round in which the queue fills, and two in case it was the receive window's growth, another
//! flow or a burst of ACKs that hid the bandwidth. Rounds in which the application limited the rate say nothing.

use crate::fixed_point::{Bandwidth, Gain};

/// Rounds without growth that make a full pipe.
const ROUNDS: u32 = 3;

/// The search for the end of the growth.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe was found to be full. It stays so for the rest of the connection.
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

    /// The members of `struct bbr` that are kept here.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("full_bw_reached", u64::from(self.is_reached));
        take("full_bw", self.baseline.raw());
        take("full_bw_cnt", u64::from(self.rounds));
    }

    /// The next round sets the baseline anew, and counts from none again.
    pub fn forget_baseline(&mut self) {
        self.baseline = Bandwidth::ZERO;
    }

    /// The search begins anew, if it is not over.
    pub fn restart(&mut self) {
        self.baseline = Bandwidth::ZERO;
        self.rounds = 0;
    }
}
