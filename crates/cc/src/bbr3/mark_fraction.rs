//! State of the response to ECN marks.

use thalweg_units::Packets;

#[derive(Debug)]
pub(super) struct MarkFraction {
    /// Whether the marks come from a queue with a shallow threshold.
    pub is_low: bool,
    /// Whether BBR responds to marks: the minimum round-trip time has been short enough.
    pub is_eligible: bool,
    /// The smoothed fraction, in 256ths.
    pub fraction: u64,
    /// Consecutive rounds with too many marks, before the pipe is full.
    pub startup_rounds: u32,
    /// Counts of delivered and marked packets at the last update.
    pub delivered: Packets,
    pub marked: Packets,
}

impl MarkFraction {
    pub fn new(is_low: bool) -> MarkFraction {
        let none = Packets::ZERO;
        MarkFraction { is_low, is_eligible: false, fraction: 256, startup_rounds: 0, delivered: none, marked: none }
    }
}
