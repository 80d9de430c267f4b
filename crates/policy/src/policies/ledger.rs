//! What the simple learners know of a destination: the mean reward of each arm.
//!
//! Rewards of short and long connections are different things, so each counts by how far it is from the mean of its class at
//! that destination before it.

use crate::arm::{ArmId, Arms};
use crate::objective::Objective;
use crate::outcome::{Group, Outcome};
use crate::prefix::Prefix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By destination.
pub(crate) type Ledgers = BTreeMap<Prefix, Ledger>;

/// Of a destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub arms: Vec<Mean>,
    classes: Vec<Mean>,
    /// Mean squared distance of rewards from their arm's mean.
    pub variance: Mean,
}

/// A mean in which old samples count for less.
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

    /// Connections that count.
    pub fn connections(&self) -> f64 {
        self.arms.iter().map(|arm| arm.n).sum()
    }

    /// The arm with the best mean; one that was not tried goes before all.
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

/// Adds an outcome; what was there before counts for `keep` of what it did.
pub(crate) fn learn(ledgers: &mut Ledgers, arms: &Arms, objective: &Objective, outcome: &Outcome, keep: f64) {
    let Some(reward) = objective.reward(outcome) else { return };
    if outcome.group == Group::Untouched {
        return;
    }
    let ledger = ledgers.entry(outcome.prefix).or_insert_with(|| Ledger::new(arms));
    let class = objective.size(outcome.acked) as usize * 2 + outcome.direction as usize;
    let all = ledger.arms.iter_mut().chain(&mut ledger.classes).chain([&mut ledger.variance]);
    all.for_each(|mean| mean.n *= keep);
    let level = ledger.classes[class];
    ledger.classes[class].add(reward);
    if level.n == 0.0 {
        // The first one of its class has nothing to be compared with; that it was tried still counts a little.
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
