//! Upper confidence bounds, discounted: the arm that may be the best.
//!
//! Source: Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011 (discounted UCB), with
//! the rewards' own scatter in the place of their range.

use crate::arm::{ArmId, Arms};
use crate::event::Event;
use crate::objective::Objective;
use crate::outcome::{Class, Outcome};
use crate::policies::ledger::{Ledger, Ledgers, learn};
use crate::policy::{Explanation, Policy, bare_views};
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::Time;

/// How it explores and forgets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UcbSettings {
    /// Width of the bounds, in standard deviations of the mean times `sqrt(ln n)`.
    pub width: f64,
    /// How many connections back it remembers; older ones count for less and less.
    pub memory: f64,
}

impl Default for UcbSettings {
    fn default() -> UcbSettings {
        UcbSettings { width: 1.0, memory: 200.0 }
    }
}

/// Discounted UCB by destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ucb {
    arms: Arms,
    objective: Objective,
    settings: UcbSettings,
    ledgers: Ledgers,
}

impl Ucb {
    /// Nothing is known yet.
    pub fn new(arms: Arms, objective: Objective, settings: UcbSettings) -> Ucb {
        Ucb { arms, objective, settings, ledgers: BTreeMap::new() }
    }

    /// What an arm may be worth; without bounds while it was not tried.
    fn bound(&self, ledger: &Ledger, arm: usize) -> f64 {
        let mean = ledger.arms[arm];
        if mean.n < 0.5 {
            return f64::INFINITY;
        }
        // Until rewards have been seen to scatter: as much as completion times do.
        const USUAL: f64 = 0.25;
        let variance = (USUAL + ledger.variance.n * ledger.variance.value) / (1.0 + ledger.variance.n);
        let all = ledger.connections().max(1.0);
        mean.value + self.settings.width * libm::sqrt(variance * libm::log(all).max(1.0) / mean.n)
    }
}

impl Policy for Ucb {
    fn name(&self) -> &'static str {
        "ucb"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<Event> {
        let keep = 1.0 - 1.0 / self.settings.memory.max(1.0);
        learn(&mut self.ledgers, &self.arms, &self.objective, outcome, keep);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        let Some(ledger) = self.ledgers.get(&prefix) else { return Weights::only(&self.arms, self.arms.default()) };
        let mut most = 0;
        for arm in 1..self.arms.len() {
            if self.bound(ledger, arm) > self.bound(ledger, most) {
                most = arm;
            }
        }
        Weights::only(&self.arms, ArmId(most as u8))
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let mut arms = bare_views(&self.arms, &weights);
        if let Some(ledger) = self.ledgers.get(&prefix) {
            arms.iter_mut().zip(&ledger.arms).for_each(|(view, mean)| view.connections = mean.n);
        }
        let name = &self.arms.arm(weights.most()).name;
        let sentence =
            format!("{name} gets the next connection because it may be the best: its upper bound is the highest.");
        Explanation { prefix, sentence, arms }
    }
}
