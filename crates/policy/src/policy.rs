//! What every policy does, and policies by name.

use crate::arm::{Arm, ArmId, Arms};
use crate::bayes::Bayes;
use crate::event::Event;
use crate::outcome::{Class, Loss, Outcome};
use crate::policies::{Ab, Bpftune, Greedy, Rules, Static, Ucb};
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Makes weights of outcomes.
pub trait Policy {
    /// The name by which it is chosen.
    fn name(&self) -> &'static str;

    /// Learns from a connection that has closed at `now`; gives what changed thereby.
    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<Event>;

    /// With which chance each arm is drawn for a connection of `class` to the destination `prefix` that opens at `now`.
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
    /// With which chance it is drawn.
    pub weight: f64,
    /// Connections that it has been judged by; old ones count for less where a policy forgets.
    pub connections: f64,
    /// Connections for which it was taken to be the best, where a policy counts these.
    pub greedy: Option<u64>,
    /// What it is worth beside the system's default, as a difference of rewards: 0.1 is a tenth of the time or the rate. None:
    /// nothing is known, or the policy thinks in other terms.
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

/// A policy by name: what is configured, kept in a snapshot, and played in simulations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum AnyPolicy {
    /// Weights that never change.
    Static(Static),
    /// Thresholds: an exported policy file.
    Rules(Rules),
    /// The rule and the learner of Oracle's bpftune.
    Bpftune(Bpftune),
    /// A randomised comparison.
    Ab(Ab),
    /// Upper confidence bounds.
    Ucb(Ucb),
    /// The best so far, and now and then another.
    Greedy(Greedy),
    /// Thompson sampling: the default.
    Bayes(Bayes),
}

/// The policy within, of whichever kind.
macro_rules! inner {
    ($any:expr) => {
        match $any {
            AnyPolicy::Static(policy) => policy,
            AnyPolicy::Rules(policy) => policy,
            AnyPolicy::Bpftune(policy) => policy,
            AnyPolicy::Ab(policy) => policy,
            AnyPolicy::Ucb(policy) => policy,
            AnyPolicy::Greedy(policy) => policy,
            AnyPolicy::Bayes(policy) => policy,
        }
    };
}

impl AnyPolicy {
    fn inner(&self) -> &dyn Policy {
        inner!(self)
    }

    fn inner_mut(&mut self) -> &mut dyn Policy {
        inner!(self)
    }

    /// Goes on with what another one has learned, with its own settings. False: it is of another kind, or what it has learned
    /// means something else here.
    pub(crate) fn go_on_from(&mut self, other: AnyPolicy) -> bool {
        match (self, other) {
            (AnyPolicy::Static(own), AnyPolicy::Static(other)) => *own == other,
            (AnyPolicy::Ab(own), AnyPolicy::Ab(other)) => *own == other,
            (AnyPolicy::Rules(own), AnyPolicy::Rules(other)) => own.go_on_from(other),
            (AnyPolicy::Bpftune(own), AnyPolicy::Bpftune(other)) => own.go_on_from(other),
            (AnyPolicy::Ucb(own), AnyPolicy::Ucb(other)) => own.ledgers.go_on_from(other.ledgers),
            (AnyPolicy::Greedy(own), AnyPolicy::Greedy(other)) => own.ledgers.go_on_from(other.ledgers),
            (AnyPolicy::Bayes(own), AnyPolicy::Bayes(other)) => own.go_on_from(other),
            _ => false,
        }
    }
}

impl Policy for AnyPolicy {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<Event> {
        self.inner_mut().observe(outcome, now)
    }

    fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights {
        self.inner().weights(prefix, class, now)
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        self.inner().explain(prefix, now)
    }

    fn on_loss(&self, loss: &Loss) -> Option<ArmId> {
        self.inner().on_loss(loss)
    }
}

/// Views of arms of which nothing is known but their weights.
pub(crate) fn bare_views(arms: &Arms, weights: &Weights) -> Vec<ArmView> {
    let view = |(arm, _): (ArmId, &Arm)| ArmView {
        arm,
        weight: weights.chance(arm),
        connections: 0.0,
        greedy: None,
        gain: None,
        cost: None,
    };
    arms.iter().map(view).collect()
}

/// A share in words: `97 %`. What is not all is not told as all.
pub(crate) fn percent(share: f64) -> String {
    if share < 1.0 && share > 0.99 { "over 99 %".to_owned() } else { format!("{:.0} %", 100.0 * share) }
}
