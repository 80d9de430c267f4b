//! The short-term bounds, and the fractions by which bounds are set.

use crate::fixed_point::Bandwidth;
use thalweg_units::Packets;

/// Loss ratio above which a response follows, in 256ths: 2 % (2.8, LossThresh).
pub(super) const LOSS_THRESHOLD: u64 = 256 * 2 / 100;

/// Share that remains after a response to loss, in 256ths: 70 % (2.8, Beta).
pub(super) const BETA: u64 = 256 - 256 * 30 / 100;

/// Bounds that hold until the next probe; `None` without a loss or a mark since the last probe.
#[derive(Debug, Default)]
pub(super) struct ShortTerm {
    pub bw: Option<Bandwidth>,
    pub inflight: Option<Packets>,
}

impl ShortTerm {
    /// Removes both bounds (ResetShortTermModel).
    pub fn reset(&mut self) {
        *self = ShortTerm::default();
    }
}
