//! Discounted upper confidence bounds: chooses the arm with the highest bound.
//!
//! Source: Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011
//! (discounted UCB), with the observed variance of rewards instead of their range.

use crate::arm::Arms;
use crate::objective::Objective;
use crate::outcome::{Class, Outcome};
use crate::policies::ledger::{Ledger, Ledgers};
use crate::policy::{Explanation, Policy};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Settings of exploration and memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UcbSettings {
    /// Width of the bounds, in standard deviations of the mean times `sqrt(ln n)`.
    pub width: f64,
    /// Memory in number of connections; the weight of older ones decreases.
    pub memory: f64,
}

impl Default for UcbSettings {
    fn default() -> UcbSettings {
        UcbSettings { width: 1.0, memory: 200.0 }
    }
}

/// Discounted UCB, by destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ucb {
    width: f64,
    pub(crate) ledgers: Ledgers,
}

impl Ucb {
    /// Creates the policy without data.
    pub fn new(arms: Arms, objective: Objective, settings: UcbSettings) -> Ucb {
        Ucb { width: settings.width, ledgers: Ledgers::new(arms, objective, settings.memory) }
    }

    /// Returns the upper confidence bound of an arm; infinite for arms with almost no data.
    fn bound(&self, ledger: &Ledger, arm: usize) -> f64 {
        let mean = ledger.arms[arm];
        if mean.n < 0.5 {
            return f64::INFINITY;
        }
        // Prior variance of rewards, with the weight of one connection.
        const USUAL: f64 = 0.25;
        let variance = (USUAL + ledger.variance.n * ledger.variance.value) / (1.0 + ledger.variance.n);
        let all = ledger.connections().max(1.0);
        mean.value + self.width * libm::sqrt(variance * libm::log(all).max(1.0) / mean.n)
    }
}

impl Policy for Ucb {
    fn name(&self) -> &'static str {
        "ucb"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        self.ledgers.learn(outcome);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        self.ledgers.weights(prefix, |ledger| {
            let mut most = 0;
            for arm in 1..ledger.arms.len() {
                if self.bound(ledger, arm) > self.bound(ledger, most) {
                    most = arm;
                }
            }
            let mut wishes = vec![0.0; ledger.arms.len()];
            wishes[most] = 1.0;
            wishes
        })
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        self.ledgers.explain(prefix, &self.weights(prefix, Class::default(), now), |name, _| {
            format!("{name} gets the next connection because the upper bound of its reward is the highest.")
        })
    }
}
