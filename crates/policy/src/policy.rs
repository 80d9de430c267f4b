//! The trait of policies.

use crate::arm::{Arm, ArmId, Arms};
use crate::outcome::{Class, Loss, Outcome};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Computes weights from outcomes.
pub trait Policy {
    /// The name by which it is chosen.
    fn name(&self) -> &'static str;

    /// Learns from a connection that closed at `now`; returns the changes.
    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent>;

    /// The probability with which each arm is drawn for a connection of `class` to the destination `prefix` that opens
    /// at `now`.
    fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights;

    /// Explains the weights.
    fn explain(&self, prefix: Prefix, now: Time) -> Explanation;

    /// Called when an open connection has retransmitted: returns the arm to which it is to switch at once, if any.
    fn on_loss(&self, _loss: &Loss) -> Option<ArmId> {
        None
    }
}

/// A value with the interval in which it lies with 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub mean: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A policy's view of an arm on the path to a destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmView {
    /// The arm.
    pub arm: ArmId,
    /// The probability with which it is drawn.
    pub weight: f64,
    /// Number of connections behind it; old ones count for less where a policy forgets.
    pub connections: f64,
    /// Connections for which it was taken to be the best, where a policy counts these.
    pub greedy: Option<u64>,
    /// Gain over the system's default, as a difference of rewards: 0.1 is a tenth of the time or the rate. `None`:
    /// unknown, or the policy uses other terms.
    pub gain: Option<Interval>,
    /// Cost, if the policy uses costs.
    pub cost: Option<f64>,
}

/// Explanation of the weights of a destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The destination.
    pub prefix: Prefix,
    /// In a sentence or two.
    pub sentence: String,
    /// Arm by arm.
    pub arms: Vec<ArmView>,
}

/// Views of arms of which only the weights are known.
pub(crate) fn bare_views(arms: &Arms, weights: &Weights) -> Vec<ArmView> {
    let view = |(arm, _): (ArmId, &Arm)| ArmView {
        arm,
        weight: weights.probability(arm),
        connections: 0.0,
        greedy: None,
        gain: None,
        cost: None,
    };
    arms.iter().map(view).collect()
}

/// A share in words: `97 %`. Only exactly 1 is `100 %`.
pub(crate) fn percent(share: f64) -> String {
    if share < 1.0 && share > 0.99 { "over 99 %".to_owned() } else { format!("{:.0} %", 100.0 * share) }
}
