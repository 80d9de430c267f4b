//! State of loss recovery.

use crate::CaState;
use crate::fixed_point::Bandwidth;
use thalweg_units::Packets;

/// State of loss recovery, and values that are saved at a loss and restored afterwards.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The state of recovery at the previous ACK, or `Loss` after a timeout since then.
    pub prior_state: CaState,
    /// cwnd before recovery or ProbeRTT.
    pub prior_cwnd: Packets,
    pub undo: Undo,
}

/// The bounds before a loss, and the state that the loss has ended (5.5.11.1).
#[derive(Debug, Default)]
pub(super) struct Undo {
    pub bw: Option<Bandwidth>,
    pub short_term: Option<Packets>,
    pub long_term: Option<Packets>,
    /// The round in which the state was saved.
    pub round: Option<u64>,
    pub was_startup: bool,
    pub was_up: bool,
}
