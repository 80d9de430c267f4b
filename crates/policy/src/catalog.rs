//! The policies by name.

use crate::arm::ArmId;
use crate::outcome::{Class, Loss, Outcome};
use crate::policies::{Ab, Bayes, Bpftune, Greedy, Rules, Static, Ucb};
use crate::policy::{Explanation, Policy};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// A policy of any type.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum AnyPolicy {
    /// Weights that never change.
    Static(Static),
    /// Threshold rules from a policy file.
    Rules(Rules),
    /// The rule and the learning algorithm of Oracle's bpftune.
    Bpftune(Bpftune),
    /// A randomised comparison.
    Ab(Ab),
    /// Upper confidence bounds.
    Ucb(Ucb),
    /// Epsilon-greedy: the best arm so far, and occasionally a random one.
    Greedy(Greedy),
    /// Thompson sampling, the default.
    Bayes(Bayes),
}

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

    /// Restores the learned state of another policy, with this one's settings. Returns false if it does not apply.
    pub(crate) fn restore_from(&mut self, other: AnyPolicy) -> bool {
        match (self, other) {
            (AnyPolicy::Static(own), AnyPolicy::Static(other)) => *own == other,
            (AnyPolicy::Ab(own), AnyPolicy::Ab(other)) => *own == other,
            (AnyPolicy::Rules(own), AnyPolicy::Rules(other)) => own.restore_from(other),
            (AnyPolicy::Bpftune(own), AnyPolicy::Bpftune(other)) => own.restore_from(other),
            (AnyPolicy::Ucb(own), AnyPolicy::Ucb(other)) => own.ledgers.restore_from(other.ledgers),
            (AnyPolicy::Greedy(own), AnyPolicy::Greedy(other)) => own.ledgers.restore_from(other.ledgers),
            (AnyPolicy::Bayes(own), AnyPolicy::Bayes(other)) => own.restore_from(other),
            _ => false,
        }
    }
}

impl Policy for AnyPolicy {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent> {
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
