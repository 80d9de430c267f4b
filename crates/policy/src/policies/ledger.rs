//! State of the simple policies: the mean reward of each arm, by destination.
//!
//! Rewards of short and long connections are not comparable, so each is counted relative to the mean of its class.

use crate::arm::{ArmId, Arms};
use crate::objective::Objective;
use crate::outcome::{Group, Outcome};
use crate::policy::{Explanation, bare_views};
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ledgers of all destinations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ledgers {
    pub arms: Arms,
    objective: Objective,
    /// In number of connections.
    memory: f64,
    of: BTreeMap<Prefix, Ledger>,
}

/// Observations of a destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub arms: Vec<Mean>,
    classes: Vec<Mean>,
    /// Mean squared difference between rewards and their arm's mean.
    pub variance: Mean,
}

/// A mean in which the weight of old samples decreases.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mean {
    pub n: f64,
    pub value: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.value += (x - self.value) / self.n;
    }
}

impl Ledger {
    fn new(arms: &Arms) -> Ledger {
        Ledger { arms: vec![Mean::default(); arms.len()], classes: vec![Mean::default(); 6], variance: Mean::default() }
    }

    pub fn connections(&self) -> f64 {
        self.arms.iter().map(|arm| arm.n).sum()
    }

    /// Returns the arm with the highest mean, or one with almost no data, if there is one.
    pub fn best(&self) -> ArmId {
        let value = |number: usize| if self.arms[number].n < 0.5 { f64::INFINITY } else { self.arms[number].value };
        let mut best = 0;
        for number in 1..self.arms.len() {
            if value(number) > value(best) {
                best = number;
            }
        }
        ArmId(best as u8)
    }
}

impl Ledgers {
    /// Creates ledgers without data.
    pub fn new(arms: Arms, objective: Objective, memory: f64) -> Ledgers {
        Ledgers { arms, objective, memory, of: BTreeMap::new() }
    }

    /// Adds an outcome, and reduces the weight of earlier ones.
    pub fn learn(&mut self, outcome: &Outcome) {
        let Some(reward) = self.objective.reward(outcome) else { return };
        if outcome.group == Group::Untouched {
            return;
        }
        let keep = 1.0 - 1.0 / self.memory.max(1.0);
        let ledger = self.of.entry(outcome.prefix).or_insert_with(|| Ledger::new(&self.arms));
        let class = self.objective.size(outcome.acked) as usize * 2 + outcome.direction as usize;
        let all = ledger.arms.iter_mut().chain(&mut ledger.classes).chain([&mut ledger.variance]);
        all.for_each(|mean| mean.n *= keep);
        let level = ledger.classes[class];
        ledger.classes[class].add(reward);
        if level.n == 0.0 {
            // The first reward of a class cannot be compared; the arm counts as tried until the next outcome.
            let arm = &mut ledger.arms[outcome.arm.index()];
            arm.n = arm.n.max(0.5);
            return;
        }
        let arm = &mut ledger.arms[outcome.arm.index()];
        let distance = reward - level.value;
        if arm.n >= 1.0 {
            ledger.variance.add((distance - arm.value) * (distance - arm.value));
        }
        arm.add(distance);
    }

    /// Returns the weights that `wishes` computes from the ledger of a destination; without data, the default arm.
    pub fn weights(&self, prefix: Prefix, wishes: impl FnOnce(&Ledger) -> Vec<f64>) -> Weights {
        match self.of.get(&prefix) {
            Some(ledger) => Weights::of(&wishes(ledger)),
            None => Weights::only(&self.arms, self.arms.default()),
        }
    }

    /// Explains the weights of a destination. `why` returns the sentence, given an arm's name and share.
    pub fn explain(&self, prefix: Prefix, weights: &Weights, why: impl FnOnce(&str, f64) -> String) -> Explanation {
        let mut arms = bare_views(&self.arms, weights);
        if let Some(ledger) = self.of.get(&prefix) {
            arms.iter_mut().zip(&ledger.arms).for_each(|(view, mean)| view.connections = mean.n);
        }
        let most = weights.most();
        let sentence = why(&self.arms.arm(most).name, weights.probability(most));
        Explanation { prefix, sentence, arms }
    }

    /// Restores the learned state of other ledgers; returns false if their objective differs.
    pub fn restore_from(&mut self, others: Ledgers) -> bool {
        let is_same = self.objective == others.objective;
        if is_same {
            self.of = others.of;
        }
        is_same
    }
}
