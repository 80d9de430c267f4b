//! Totals of a destination's connections per arm, for display.

use crate::arm::ArmId;
use crate::outcome::{Group, Outcome};
use serde::{Deserialize, Serialize};
use thalweg_units::{Packets, Rate, Span, Time};

/// Totals of a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Totals per arm, by index.
    pub arms: Vec<ArmAccount>,
    /// Time of the latest outcome.
    pub last_seen: Time,
}

/// Totals of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmAccount {
    /// Number of outcomes.
    pub connections: u64,
    /// Number of treated connections that closed with the arm while it was the preferred one.
    #[serde(default)]
    pub greedy: u64,
    /// Smallest round-trip time.
    pub rtt_min: Option<Span>,
    /// Largest delivery rate.
    pub delivery_rate_max: Option<Rate>,
    /// Data segments sent, including retransmissions.
    pub segments: Packets,
    /// Data segments that were retransmissions.
    pub retransmits: Packets,
}

impl Account {
    /// Adds an outcome. `arms` is the number of arms.
    pub(super) fn add(&mut self, outcome: &Outcome, arms: usize, preferred: Option<ArmId>, now: Time) {
        self.arms.resize_with(arms.max(self.arms.len()), ArmAccount::default);
        self.last_seen = now;
        let arm = &mut self.arms[outcome.arm.index()];
        arm.connections += 1;
        arm.greedy += u64::from(outcome.group == Group::Treated && preferred == Some(outcome.arm));
        arm.rtt_min = [arm.rtt_min, outcome.rtt_min].into_iter().flatten().min();
        arm.delivery_rate_max = [arm.delivery_rate_max, outcome.delivery_rate].into_iter().flatten().max();
        arm.segments = Packets(arm.segments.0.saturating_add(outcome.segments.0));
        arm.retransmits = Packets(arm.retransmits.0.saturating_add(outcome.retransmits.0));
    }

    /// Returns the totals of an arm; `None` without outcomes of the destination.
    pub fn arm(&self, arm: ArmId) -> Option<&ArmAccount> {
        self.arms.get(arm.index())
    }
}
