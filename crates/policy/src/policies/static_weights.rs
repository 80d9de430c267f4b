//! Constant weights.

use crate::arm::{ArmId, Arms};
use crate::outcome::{Class, Outcome};
use crate::policy::{Explanation, Policy, bare_views, percent};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// The same weights for every destination, independent of outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Static {
    arms: Arms,
    weights: Weights,
}

impl Static {
    /// Creates a policy that uses one arm for all connections.
    pub fn only(arms: Arms, arm: ArmId) -> Static {
        let weights = Weights::only(&arms, arm);
        Static { arms, weights }
    }

    /// Creates a policy with probabilities proportional to `wishes`, one per arm.
    pub fn of(arms: Arms, wishes: &[f64]) -> Static {
        Static { arms, weights: Weights::of(wishes) }
    }
}

impl Policy for Static {
    fn name(&self) -> &'static str {
        "static"
    }

    fn observe(&mut self, _outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        Vec::new()
    }

    fn weights(&self, _prefix: Prefix, _class: Class, _now: Time) -> Weights {
        self.weights.clone()
    }

    fn explain(&self, prefix: Prefix, _now: Time) -> Explanation {
        let most = self.weights.most();
        let share = percent(self.weights.probability(most));
        let sentence = format!(
            "{} gets {share} of new connections because the policy has fixed shares.",
            self.arms.arm(most).name
        );
        Explanation { prefix, sentence, arms: bare_views(&self.arms, &self.weights) }
    }
}
