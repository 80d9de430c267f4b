//! Epsilon-greedy: the best arm so far, and sometimes a random one.

use crate::arm::Arms;
use crate::objective::Objective;
use crate::outcome::{Class, Outcome};
use crate::policies::ledger::Ledgers;
use crate::policy::{Explanation, Policy, percent};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Settings of exploration and memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GreedySettings {
    /// Share of connections that use a random arm.
    pub epsilon: f64,
    /// Memory in number of connections; the weight of older ones decreases.
    pub memory: f64,
}

impl Default for GreedySettings {
    fn default() -> GreedySettings {
        GreedySettings { epsilon: 0.05, memory: 200.0 }
    }
}

/// Epsilon-greedy, by destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    epsilon: f64,
    pub(crate) ledgers: Ledgers,
}

impl Greedy {
    /// Creates the policy without data.
    pub fn new(arms: Arms, objective: Objective, settings: GreedySettings) -> Greedy {
        Greedy { epsilon: settings.epsilon, ledgers: Ledgers::new(arms, objective, settings.memory) }
    }
}

impl Policy for Greedy {
    fn name(&self) -> &'static str {
        "epsilon-greedy"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        self.ledgers.learn(outcome);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        self.ledgers.weights(prefix, |ledger| {
            let mut wishes = vec![self.epsilon / ledger.arms.len() as f64; ledger.arms.len()];
            wishes[ledger.best().index()] += 1.0 - self.epsilon;
            wishes
        })
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        self.ledgers.explain(prefix, &self.weights(prefix, Class::default(), now), |name, share| {
            let share = percent(share);
            format!(
                "{name} gets {share} of new connections because its mean reward is the highest, or it has not been \
                     tried yet."
            )
        })
    }
}
