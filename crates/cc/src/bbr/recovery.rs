//! cwnd during loss recovery.

use crate::CaState;
use thalweg_units::Packets;

#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The state of recovery at the latest ACK that delivered packets, or `Loss` after a timeout since then.
    pub prior_state: CaState,
    /// Whether one packet is sent per delivered packet (packet conservation).
    pub is_conserving: bool,
    /// cwnd before recovery or ProbeRTT.
    pub prior_cwnd: Packets,
}

pub(super) fn is_recovering(state: CaState) -> bool {
    matches!(state, CaState::Recovery | CaState::Loss)
}

impl Recovery {
    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("prev_ca_state", self.prior_state as u64);
        take("packet_conservation", u64::from(self.is_conserving));
        take("prior_cwnd", self.prior_cwnd.0);
    }
}
