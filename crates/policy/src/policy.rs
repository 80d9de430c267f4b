//! The trait of policies.

use crate::arm::{Arm, ArmId, Arms};
use crate::outcome::{Class, Loss, Outcome};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Makes weights of outcomes.
pub trait Policy {
    /// The name by which it is chosen.
    fn name(&self) -> &'static str;

    /// Learns from a connection that closed at `now`; returns the changes.
    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent>;

    /// The probability with which each arm is drawn for a connection of `class` to the destination `prefix` that opens
    /// at `now`.
    fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights;

    /// Why the weights are as they are.
    fn explain(&self, prefix: Prefix, now: Time) -> Explanation;

    /// A connection at work has retransmitted: the arm to which it is to change at once, if any.
    fn on_loss(&self, _loss: &Loss) -> Option<ArmId> {
        None
    }
}

/// A value with the interval in which it lies with 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a policy holds of an arm on the way to a destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmView {
    /// The arm.
    pub arm: ArmId,
    /// The probability with which it is drawn.
    pub weight: f64,
    /// Connections that it has been judged by; old ones count for less where a policy forgets.
    pub connections: f64,
    /// Connections for which it was taken to be the best, where a policy counts these.
    pub greedy: Option<u64>,
    /// What it is worth beside the system's default, as a difference of rewards: 0.1 is a tenth of the time or the
    /// rate. None: nothing is known, or the policy thinks in other terms.
    pub gain: Option<Interval>,
    /// What it costs, where the policy goes by a cost.
    pub cost: Option<f64>,
}

/// Why the weights towards a destination are as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The destination.
    pub prefix: Prefix,
    /// In a sentence or two.
    pub sentence: String,
    /// Arm by arm.
    pub arms: Vec<ArmView>,
}

/// Views of arms of which nothing is known but their weights.
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
