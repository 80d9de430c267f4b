//! The trait that all policies implement, and explanations of their weights.

use crate::arm::{Arm, ArmId, Arms};
use crate::outcome::{Class, Loss, Outcome};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// A policy, which computes weights from outcomes.
pub trait Policy {
    /// Returns the name of the policy.
    fn name(&self) -> &'static str;

    /// Updates the state with a connection that closed at `now`. Returns the resulting changes.
    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent>;

    /// Returns the probabilities with which each arm is drawn for a connection of `class` to the destination `prefix`
    /// that opens at `now`.
    fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights;

    /// Explains the weights.
    fn explain(&self, prefix: Prefix, now: Time) -> Explanation;

    /// Handles a retransmission of an open connection. Returns the arm to which it must switch immediately, if any.
    fn on_loss(&self, _loss: &Loss) -> Option<ArmId> {
        None
    }
}

/// A value with its 95 % interval.
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
    /// The probability with which the arm is drawn.
    pub weight: f64,
    /// Number of connections on which the view is based, with the policy's discount of older ones.
    pub connections: f64,
    /// Number of connections that used the arm as the best one, if the policy counts them.
    pub greedy: Option<u64>,
    /// Gain over the system's default, as a difference of rewards; `None` for the default itself, and if gains are not
    /// estimated.
    pub gain: Option<Interval>,
    /// Cost, if the policy uses costs.
    pub cost: Option<f64>,
}

/// Explanation of the weights of a destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The destination.
    pub prefix: Prefix,
    /// The explanation.
    pub sentence: String,
    /// The policy's view of each arm.
    pub arms: Vec<ArmView>,
}

/// Returns views of arms for which only the weights are known.
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

/// Formats a share as a percentage; a share below 1 does not become 100 %.
pub(crate) fn percent(share: f64) -> String {
    if share < 1.0 && share > 0.99 { "over 99 %".to_owned() } else { format!("{:.0} %", 100.0 * share) }
}
