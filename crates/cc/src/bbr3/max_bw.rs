//! The maximum bandwidth of the last two probes (5.5.2 to 5.5.6).
//!
//! This is the maximum of all samples since the end of the last probe but one. The window advances one round after a
//! probe has ended, when its samples have arrived.

use crate::fixed_point::Bandwidth;

/// The maximum over the present cycle of ProbeBW and the one before.
#[derive(Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: Bandwidth,
    present: Bandwidth,
}

impl MaxBandwidth {
    /// The maximum.
    pub fn max(&self) -> Bandwidth {
        self.previous.max(self.present)
    }

    /// Takes a sample.
    pub fn update(&mut self, bw: Bandwidth) {
        self.present = self.present.max(bw);
    }

    /// Starts the next cycle. Without a sample in this one, the older one is kept.
    pub fn advance(&mut self) {
        if self.present != Bandwidth::ZERO {
            self.previous = self.present;
            self.present = Bandwidth::ZERO;
        }
    }
}
