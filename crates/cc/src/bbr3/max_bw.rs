//! The maximum bandwidth of the last two probes (5.5.2 to 5.5.6).
//!
//! The window advances one round after a probe has ended, when its samples have arrived.

use crate::fixed_point::Bandwidth;

/// The maximum over the current cycle of ProbeBW and the previous one.
#[derive(Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: Bandwidth,
    present: Bandwidth,
}

impl MaxBandwidth {
    /// Returns the maximum.
    pub fn max(&self) -> Bandwidth {
        self.previous.max(self.present)
    }

    /// Adds a sample.
    pub fn update(&mut self, bw: Bandwidth) {
        self.present = self.present.max(bw);
    }

    /// Starts the next cycle. If the current one has no sample, the previous maximum is kept.
    pub fn advance(&mut self) {
        if self.present != Bandwidth::ZERO {
            self.previous = self.present;
            self.present = Bandwidth::ZERO;
        }
    }
}
