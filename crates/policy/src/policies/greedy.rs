//! The best so far, and now and then another: epsilon-greedy, the baseline of every bandit.

use crate::arm::Arms;
use crate::event::Event;
use crate::objective::Objective;
use crate::outcome::{Class, Outcome};
use crate::policies::ledger::{Ledgers, learn};
use crate::policy::{Explanation, Policy, bare_views, percent};
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::Time;

/// How it explores and forgets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GreedySettings {
    /// Share of connections that get any arm.
    pub epsilon: f64,
    /// How many connections back it remembers; older ones count for less and less.
    pub memory: f64,
}

impl Default for GreedySettings {
    fn default() -> GreedySettings {
        GreedySettings { epsilon: 0.05, memory: 200.0 }
    }
}

/// Epsilon-greedy by destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    arms: Arms,
    objective: Objective,
    settings: GreedySettings,
    ledgers: Ledgers,
}

impl Greedy {
    /// Nothing is known yet.
    pub fn new(arms: Arms, objective: Objective, settings: GreedySettings) -> Greedy {
        Greedy { arms, objective, settings, ledgers: BTreeMap::new() }
    }
}

impl Policy for Greedy {
    fn name(&self) -> &'static str {
        "epsilon-greedy"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<Event> {
        let keep = 1.0 - 1.0 / self.settings.memory.max(1.0);
        learn(&mut self.ledgers, &self.arms, &self.objective, outcome, keep);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        let Some(ledger) = self.ledgers.get(&prefix) else { return Weights::only(&self.arms, self.arms.default()) };
        let mut wishes = vec![self.settings.epsilon / self.arms.len() as f64; self.arms.len()];
        wishes[ledger.best().index()] += 1.0 - self.settings.epsilon;
        Weights::of(&wishes)
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let mut arms = bare_views(&self.arms, &weights);
        if let Some(ledger) = self.ledgers.get(&prefix) {
            arms.iter_mut().zip(&ledger.arms).for_each(|(view, mean)| view.connections = mean.n);
        }
        let most = weights.most();
        let (name, share) = (&self.arms.arm(most).name, percent(weights.chance(most)));
        let sentence =
            format!("{name} gets {share} of new connections because its mean is the best, or it was not tried yet.");
        Explanation { prefix, sentence, arms }
    }
}
