//! A guard around a policy, which limits the harm that the policy can do.
//!
//! - **Hold-out.** A share of connections keeps the system's default. The other (treated) connections are compared with
//!   them.
//! - **Test.** The comparison is evaluated after each pair of connections ([`evidence`]). Where treated connections
//!   are worse, the default is restored for the destination, or for a prefix that contains it. After `withdraw_for` the
//!   policy may try again, with a stricter test.
//! - **Smaller hold-out.** Where treated connections are significantly better, holding out is harmful, so the share is
//!   reduced.
//! - **CPU.** Arms that need an unshared CPU are excluded while the host is short of CPU.

mod account;
mod evidence;
mod pairs;

use crate::arm::{ArmId, Arms};
use crate::catalog::AnyPolicy;
use crate::objective::Objective;
use crate::outcome::{Class, Direction, Group, Loss, Outcome};
use crate::policy::{Explanation, Policy, percent};
use crate::policy_event::{Change, PolicyEvent};
use crate::prefix::{Prefix, Tree};
use crate::weights::Weights;
use evidence::{Evidence, Standing};
use pairs::Stratum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::{Span, Time};

pub use account::{Account, ArmAccount};
pub use evidence::Difference;

/// Minimum probability at which an arm becomes the preferred one.
const PREFERRED: f64 = 0.6;

/// Settings of the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardSettings {
    /// Prefix lengths of destinations and networks.
    pub tree: Tree,
    /// Share of connections that are held out.
    pub holdout: f64,
    /// Share of connections that are held out where treated ones are significantly better.
    pub least_holdout: f64,
    /// Upper bound of the probability that any false withdrawal ever occurs.
    pub alpha: f64,
    /// Duration of a withdrawal, during which the default is used.
    pub withdraw_for: Span,
    /// Maximum number of destinations.
    pub most_prefixes: usize,
}

impl Default for GuardSettings {
    fn default() -> GuardSettings {
        GuardSettings {
            tree: Tree::default(),
            holdout: 0.05,
            least_holdout: 0.01,
            alpha: 0.05,
            withdraw_for: Span::from_secs(86_400),
            most_prefixes: 100_000,
        }
    }
}

/// State of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Whether the host is short of CPU.
    pub is_cpu_limited: bool,
}

/// A policy, wrapped by a guard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guard {
    arms: Arms,
    policy: AnyPolicy,
    objective: Objective,
    settings: GuardSettings,
    host: Host,
    /// Tests of destinations and of the prefixes that contain them.
    evidence: BTreeMap<Prefix, Evidence>,
    tests: u64,
    destinations: BTreeMap<Prefix, Destination>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Destination {
    account: Account,
    stratum: Stratum,
    preferred: Option<ArmId>,
    /// Direction of the latest observed connection since the preferred arm was last checked.
    #[serde(skip)]
    news: Option<Direction>,
}

impl Guard {
    /// Creates a guard without learned state.
    pub fn new(arms: Arms, policy: AnyPolicy, objective: Objective, settings: GuardSettings) -> Guard {
        let (evidence, destinations) = (BTreeMap::new(), BTreeMap::new());
        Guard { arms, policy, objective, settings, host: Host::default(), evidence, tests: 0, destinations }
    }

    /// Returns the arms.
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// Returns the wrapped policy.
    pub fn policy(&self) -> &AnyPolicy {
        &self.policy
    }

    /// Returns every known destination, with its totals.
    pub fn destinations(&self) -> impl Iterator<Item = (Prefix, &Account)> {
        self.destinations.iter().map(|(&prefix, destination)| (prefix, &destination.account))
    }

    /// Returns the totals of a destination; `None` if it is unknown.
    pub fn account(&self, prefix: Prefix) -> Option<&Account> {
        self.destinations.get(&prefix).map(|destination| &destination.account)
    }

    /// Whether any known destination is within a prefix.
    pub fn knows_within(&self, prefix: Prefix) -> bool {
        self.destinations.range(prefix..).next().is_some_and(|(first, _)| prefix.has(*first))
    }

    /// Returns the latest preferred arm of a destination that [`Guard::note_preference`] has found, if any.
    pub fn preferred(&self, prefix: Prefix) -> Option<ArmId> {
        self.destinations.get(&prefix).and_then(|destination| destination.preferred)
    }

    /// Returns the end of the withdrawal for new connections to a destination, if one is in effect.
    pub fn withdrawn_until(&self, prefix: Prefix, now: Time) -> Option<Time> {
        let prefix = self.settings.tree.leaf_of(prefix);
        self.around(prefix).filter_map(|evidence| evidence.withdrawn_until(now)).max()
    }

    /// Restores the learned state of another guard, with this one's settings.
    ///
    /// # Errors
    /// If the learned state does not apply; the error names the difference.
    pub fn restore_from(&mut self, other: Guard) -> Result<(), &'static str> {
        if self.arms != other.arms {
            return Err("other arms or another default");
        }
        if self.settings.tree != other.settings.tree {
            return Err("destination prefixes of another length");
        }
        if self.objective != other.objective {
            return Err("another objective");
        }
        if !self.policy.restore_from(other.policy) {
            return Err("another policy, or other settings of the policy");
        }
        (self.evidence, self.tests, self.destinations) = (other.evidence, other.tests, other.destinations);
        Ok(())
    }

    /// Returns the gain of a prefix's treated connections over held-out ones; `None` below two pairs.
    pub fn difference(&self, prefix: Prefix) -> Option<Difference> {
        self.evidence.get(&prefix).and_then(Evidence::difference)
    }

    /// Sets the host's state. Returns an event if it has changed.
    pub fn set_host(&mut self, host: Host, now: Time) -> Option<PolicyEvent> {
        if std::mem::replace(&mut self.host, host) == host {
            return None;
        }
        let (change, reason) = if host.is_cpu_limited {
            (Change::CpuLimited, "the host is off CPU for longer than pacing can compensate")
        } else {
            (Change::CpuFree, "the host is no longer short of CPU")
        };
        Some(PolicyEvent { at: now, prefix: None, change, reason: reason.to_owned() })
    }

    /// Learns from a closed connection, and returns the resulting changes. Connections of [`Group::Untouched`] are only
    /// counted, as are those that a shortage of CPU limited, if their arm needs an unshared CPU.
    pub fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent> {
        if outcome.arm.index() >= self.arms.len() {
            return Vec::new();
        }
        let prefix = self.settings.tree.leaf_of(outcome.prefix);
        let outcome = &Outcome { prefix, ..*outcome };
        let destination = self.destinations.entry(prefix).or_default();
        destination.account.add(outcome, self.arms.len(), destination.preferred, now);
        self.evict();
        if outcome.group == Group::Untouched || (outcome.is_cpu_limited && self.arms.arm(outcome.arm).needs_whole_cpu) {
            return Vec::new();
        }
        let mut events = self.policy.observe(outcome, now);
        // During a withdrawal, new connections of both groups use the default.
        if !self.standing(prefix, now).1 {
            if let Some(distance) = self.pair(outcome) {
                self.weigh(prefix, distance, now, &mut events);
            }
        }
        if let Some(destination) = self.destinations.get_mut(&prefix) {
            destination.news = Some(outcome.direction);
        }
        events
    }

    /// Returns an event if the preferred arm of a destination has changed, given the current weights of incoming and
    /// outgoing connections. Those of the direction of the latest outcome count; `None` without an outcome since the
    /// previous call. This is separate from [`Guard::observe`], because computing the weights costs more than learning.
    pub fn note_preference(
        &mut self,
        prefix: Prefix,
        incoming: &Weights,
        outgoing: &Weights,
        now: Time,
    ) -> Option<PolicyEvent> {
        let destination = self.destinations.get_mut(&prefix)?;
        let weights = match destination.news.take()? {
            Direction::In => incoming,
            Direction::Out => outgoing,
        };
        let most = weights.most();
        if weights.probability(most) < PREFERRED || destination.preferred == Some(most) {
            return None;
        }
        let before = destination.preferred.replace(most);
        let change = Change::Preferred {
            from: before.map(|arm| self.arms.arm(arm).name.clone()),
            to: self.arms.arm(most).name.clone(),
        };
        let reason = self.reason(prefix, now, self.policy.explain(prefix, now).sentence);
        Some(PolicyEvent { at: now, prefix: Some(prefix), change, reason })
    }

    /// Returns the probabilities with which a connection that opens at `now` is held out, and each arm is drawn
    /// otherwise.
    pub fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights {
        let prefix = self.settings.tree.leaf_of(prefix);
        let (holdout, is_withdrawn) = self.standing(prefix, now);
        let weights = if is_withdrawn {
            Weights::only(&self.arms, self.arms.default())
        } else {
            self.policy.weights(prefix, class, now)
        };
        self.within_cpu(weights).holding_out(holdout)
    }

    /// Handles a retransmission of an open connection. Returns the arm to which it must switch immediately, if any.
    pub fn on_loss(&self, loss: &Loss, now: Time) -> Option<ArmId> {
        let prefix = self.settings.tree.leaf_of(loss.prefix);
        let arm = self.policy.on_loss(loss)?;
        let is_out = self.host.is_cpu_limited && self.arms.arm(arm).needs_whole_cpu;
        (!is_out && !self.standing(prefix, now).1).then_some(arm)
    }

    /// Explains the weights.
    pub fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let prefix = self.settings.tree.leaf_of(prefix);
        let mut explanation = self.policy.explain(prefix, now);
        let weights = self.weights(prefix, Class::default(), now);
        let (holdout, _) = self.standing(prefix, now);
        let default = &self.arms.arm(self.arms.default()).name;
        explanation.sentence = self.reason(prefix, now, explanation.sentence);
        explanation
            .sentence
            .push_str(&format!(" {} of connections are held out and keep {default}.", percent(holdout)));
        for view in &mut explanation.arms {
            view.weight = weights.probability(view.arm);
        }
        explanation
    }

    /// Returns the reason for overriding the policy, if there is one, and the policy's own explanation.
    fn reason(&self, prefix: Prefix, now: Time, policys: String) -> String {
        let (_, is_withdrawn) = self.standing(prefix, now);
        if is_withdrawn {
            let remaining = self.withdrawn_until(prefix, now).map_or(Span::ZERO, |until| until.since(now));
            return format!(
                "{} applies for another {:.1} h, because chosen algorithms were worse than the default. The policy's \
                 own choice: {policys}",
                self.arms.arm(self.arms.default()).name,
                remaining.as_secs_f64() / 3600.0,
            );
        }
        let wanted = self.policy.weights(prefix, Class::default(), now);
        let mut arms = self.arms.iter();
        if !self.host.is_cpu_limited || !arms.any(|(id, arm)| arm.needs_whole_cpu && wanted.probability(id) > 0.0) {
            return policys;
        }
        let weights = self.within_cpu(wanted);
        let most = weights.most();
        format!(
            "{} gets {} of new connections: the host is short of CPU, which excludes algorithms that need a whole CPU. \
             The policy's own choice: {policys}",
            self.arms.arm(most).name,
            percent(weights.probability(most)),
        )
    }

    /// Returns the tests of a destination and of the prefixes that contain it, the largest first.
    fn around(&self, prefix: Prefix) -> impl Iterator<Item = &Evidence> {
        let prefixes = self.settings.tree.ancestors(prefix).chain([prefix]);
        prefixes.filter_map(|prefix| self.evidence.get(&prefix))
    }

    /// Returns the hold-out share, and whether the default was restored.
    fn standing(&self, prefix: Prefix, now: Time) -> (f64, bool) {
        let mut holdout = self.settings.holdout;
        let mut is_withdrawn = false;
        for evidence in self.around(prefix) {
            is_withdrawn |= evidence.withdrawn_until(now).is_some();
            if evidence.is_better() {
                holdout = self.settings.least_holdout.min(holdout);
            }
        }
        (holdout, is_withdrawn)
    }

    /// Removes the arms that need an unshared CPU while the host is short of CPU. If no other arm has a positive
    /// probability, the default is used or, if it needs an unshared CPU, the first arm that does not.
    fn within_cpu(&self, weights: Weights) -> Weights {
        if !self.host.is_cpu_limited {
            return weights;
        }
        let needs_cpu = |arm: ArmId| self.arms.arm(arm).needs_whole_cpu;
        let default = self.arms.default();
        let instead = if needs_cpu(default) {
            self.arms.iter().map(|(arm, _)| arm).find(|&arm| !needs_cpu(arm)).unwrap_or(default)
        } else {
            default
        };
        weights.without(instead, needs_cpu)
    }

    /// Returns the difference of rewards, treated minus held out, if the connection completes a pair.
    fn pair(&mut self, outcome: &Outcome) -> Option<f64> {
        let reward = self.objective.reward(outcome)?;
        let class = (self.objective.size(outcome.acked), outcome.direction);
        let destination = self.destinations.get_mut(&outcome.prefix)?;
        destination.stratum.take(class, outcome.group == Group::HeldOut, reward)
    }

    /// Adds a pair to the tests of a destination and of the prefixes that contain it.
    fn weigh(&mut self, prefix: Prefix, distance: f64, now: Time, events: &mut Vec<PolicyEvent>) {
        let scale =
            self.destinations.get_mut(&prefix).map_or(1.0, |destination| destination.stratum.scale_before(distance));
        let prefixes: Vec<Prefix> = self.settings.tree.ancestors(prefix).chain([prefix]).collect();
        for prefix in prefixes {
            let evidence = self.evidence.entry(prefix).or_insert_with(|| {
                self.tests += 1;
                Evidence::new(self.tests)
            });
            let standing = evidence.add(distance, scale, self.settings.alpha, now, self.settings.withdraw_for);
            let difference = evidence.difference().map_or_else(String::new, |difference| difference.to_string());
            let (change, reason) = match standing {
                None => continue,
                Some(Standing::Better | Standing::NoLongerBetter) if !self.may_shrink(prefix) => continue,
                Some(Standing::Worse { until }) => (
                    Change::Withdrawn { until },
                    format!("chosen algorithms were worse than the default: {difference}"),
                ),
                Some(Standing::Resumed) => (Change::Resumed, "the withdrawal period has ended".to_owned()),
                Some(Standing::Better) => {
                    (Change::HoldoutShrunk, format!("chosen algorithms are better than the default: {difference}"))
                }
                Some(Standing::NoLongerBetter) => {
                    (Change::HoldoutRestored, format!("the advantage is no longer significant: {difference}"))
                }
            };
            events.push(PolicyEvent { at: now, prefix: Some(prefix), change, reason });
        }
    }

    /// Returns whether an advantage at this prefix changes the hold-out. The settings may fix the hold-out, or a larger
    /// prefix may have reduced it.
    fn may_shrink(&self, prefix: Prefix) -> bool {
        let mut around = self.settings.tree.ancestors(prefix).filter_map(|outer| self.evidence.get(&outer));
        self.settings.least_holdout < self.settings.holdout && !around.any(Evidence::is_better)
    }

    fn evict(&mut self) {
        if self.destinations.len() <= self.settings.most_prefixes {
            return;
        }
        let mut by_age: Vec<(Time, Prefix)> =
            self.destinations.iter().map(|(&prefix, found)| (found.account.last_seen, prefix)).collect();
        by_age.sort_unstable();
        for &(_, prefix) in &by_age[..by_age.len().div_ceil(8)] {
            self.destinations.remove(&prefix);
            self.evidence.remove(&prefix);
        }
    }
}
