//! The guard around every policy, which limits the harm that it can do.
//!
//! - **Hold-out.** A share of connections keeps the system's default. The rest is compared with it.
//! - **Test.** The comparison is evaluated after every connection ([`evidence`]). Where the rest is worse, the default
//!   is restored, for the destination, for its network, or everywhere; after a day the policy may try again, with a
//!   stricter test. The probability that any of these tests ever raises a false alarm is at most `alpha`, for any
//!   number of destinations.
//! - **Hold-out, again.** Where the rest is significantly better, holding out is harmful, and the share shrinks.
//! - **CPU.** Arms that need a whole CPU are left out while the host is short of it, and their outcomes of that time
//!   are not learned from.
//! - **Events.** Every change has its reason.

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

/// Minimum probability of a preferred arm.
const PREFERRED: f64 = 0.6;

/// Settings of the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardSettings {
    /// Prefix lengths of destinations and networks.
    pub tree: Tree,
    /// Share of connections held out.
    pub holdout: f64,
    /// The same where the rest is better for certain.
    pub least_holdout: f64,
    /// Probability of any false withdrawal, ever.
    pub alpha: f64,
    /// Time for which the default stays.
    pub withdraw_for: Span,
    /// Maximum number of destinations; beyond it, the least recently active ones are dropped.
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

/// State of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Whether it is short of CPU.
    pub is_cpu_limited: bool,
}

/// A policy with a guard around it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guard {
    arms: Arms,
    policy: AnyPolicy,
    objective: Objective,
    settings: GuardSettings,
    host: Host,
    /// The results of the comparison, for destinations and the prefixes around them.
    evidence: BTreeMap<Prefix, Evidence>,
    /// Number of tests ever begun: later ones are stricter.
    tests: u64,
    destinations: BTreeMap<Prefix, Destination>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Destination {
    account: Account,
    stratum: Stratum,
    preferred: Option<ArmId>,
    /// Direction of the last connection that was learned from since the preferred arm was last checked.
    #[serde(skip)]
    news: Option<Direction>,
}

impl Guard {
    /// Makes a guard around a policy, with or without learned state.
    pub fn new(arms: Arms, policy: AnyPolicy, objective: Objective, settings: GuardSettings) -> Guard {
        let (evidence, destinations) = (BTreeMap::new(), BTreeMap::new());
        Guard { arms, policy, objective, settings, host: Host::default(), evidence, tests: 0, destinations }
    }

    /// The arms.
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// The policy within.
    pub fn policy(&self) -> &AnyPolicy {
        &self.policy
    }

    /// Returns every known destination, with its totals.
    pub fn destinations(&self) -> impl Iterator<Item = (Prefix, &Account)> {
        self.destinations.iter().map(|(&prefix, destination)| (prefix, &destination.account))
    }

    /// The totals of a destination; `None` if it is unknown or was dropped.
    pub fn account(&self, prefix: Prefix) -> Option<&Account> {
        self.destinations.get(&prefix).map(|destination| &destination.account)
    }

    /// Whether any known destination is within a prefix.
    pub fn knows_within(&self, prefix: Prefix) -> bool {
        self.destinations.range(prefix..).next().is_some_and(|(first, _)| prefix.has(*first))
    }

    /// Returns the arm that most new connections to a destination get, if one was preferred yet.
    pub fn preferred(&self, prefix: Prefix) -> Option<ArmId> {
        self.destinations.get(&prefix).and_then(|destination| destination.preferred)
    }

    /// Until when the default is back for new connections to a destination, if it is.
    pub fn withdrawn_until(&self, prefix: Prefix, now: Time) -> Option<Time> {
        let prefix = self.settings.tree.leaf_of(prefix);
        self.around(prefix).filter_map(|evidence| evidence.withdrawn_until(now)).max()
    }

    /// Takes over what another guard has learned, with this one's settings.
    ///
    /// # Errors
    /// If the learned state does not apply here: names the difference. Nothing is taken over then.
    pub fn restore_from(&mut self, other: Guard) -> Result<(), &'static str> {
        if self.arms != other.arms {
            return Err("other arms, or another default");
        }
        if self.settings.tree != other.settings.tree {
            return Err("destinations of another size");
        }
        if self.objective != other.objective {
            return Err("another objective");
        }
        if !self.policy.restore_from(other.policy) {
            return Err("another policy, or one with other settings");
        }
        (self.evidence, self.tests, self.destinations) = (other.evidence, other.tests, other.destinations);
        Ok(())
    }

    /// Returns the gain of a prefix's treated connections over held-out ones; `None` while there is nothing to compare.
    pub fn difference(&self, prefix: Prefix) -> Option<Difference> {
        self.evidence.get(&prefix).and_then(Evidence::difference)
    }

    /// Updates the host's state.
    pub fn set_host(&mut self, host: Host, now: Time) -> Option<PolicyEvent> {
        if std::mem::replace(&mut self.host, host) == host {
            return None;
        }
        let (change, reason) = if host.is_cpu_limited {
            (Change::CpuLimited, "the host is off CPU for longer than pacing makes up for")
        } else {
            (Change::CpuFree, "the host gets its CPU")
        };
        Some(PolicyEvent { at: now, prefix: None, change, reason: reason.to_owned() })
    }

    /// Learns from a connection that has closed.
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
        // While the default is back, both groups have it.
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

    /// Reports a change of the arm that most connections to a destination get. The caller passes its current weights,
    /// of incoming and outgoing connections. Computing them costs more than learning from a connection, so this is
    /// called when weights are handed out, and not for each connection.
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

    /// The probability with which a connection that opens at `now` is held out, and each arm drawn if it is not.
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

    /// Called when an open connection has retransmitted: returns the arm to which it is to switch at once, if any.
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
        explanation.sentence.push_str(&format!(" {} are held out with {default}.", percent(holdout)));
        for view in &mut explanation.arms {
            view.weight = weights.probability(view.arm);
        }
        explanation
    }

    /// Explains the algorithms of connections to a destination, with the policy's own sentence, which is conditional if
    /// the policy is overridden.
    fn reason(&self, prefix: Prefix, now: Time, policys: String) -> String {
        let (_, is_withdrawn) = self.standing(prefix, now);
        if is_withdrawn {
            let remaining = self.withdrawn_until(prefix, now).map_or(Span::ZERO, |until| until.since(now));
            return format!(
                "{} is restored for another {:.1} h, because chosen connections were worse than those \
                 held out. Otherwise: {policys}",
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
            "{} gets {} of new connections: the host is short of CPU, and algorithms that need a whole one are left \
             out. Otherwise: {policys}",
            self.arms.arm(most).name,
            percent(weights.probability(most)),
        )
    }

    /// The evidence about a destination and the prefixes around it, the largest first.
    fn around(&self, prefix: Prefix) -> impl Iterator<Item = &Evidence> {
        let prefixes = self.settings.tree.ancestors(prefix).chain([prefix]);
        prefixes.filter_map(|prefix| self.evidence.get(&prefix))
    }

    /// Returns the share held out, and whether the default was restored.
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

    /// Removes the arms that the host's CPU does not allow.
    fn within_cpu(&self, weights: Weights) -> Weights {
        if !self.host.is_cpu_limited {
            return weights;
        }
        let needs_cpu = |arm: ArmId| self.arms.arm(arm).needs_whole_cpu;
        let default = self.arms.default();
        // If the default itself needs a whole CPU, the first arm that does not replaces it, if there is one.
        let instead = if needs_cpu(default) {
            self.arms.iter().map(|(arm, _)| arm).find(|&arm| !needs_cpu(arm)).unwrap_or(default)
        } else {
            default
        };
        weights.without(instead, needs_cpu)
    }

    /// Compares a connection with one of the other group, if there is one to compare it with.
    fn pair(&mut self, outcome: &Outcome) -> Option<f64> {
        let reward = self.objective.reward(outcome)?;
        let class = (self.objective.size(outcome.acked), outcome.direction);
        let destination = self.destinations.get_mut(&outcome.prefix)?;
        destination.stratum.take(class, outcome.group == Group::HeldOut, reward)
    }

    /// Adds a pair to the evidence about a destination and all around it.
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
                Some(Standing::Worse { until }) => (
                    Change::Withdrawn { until },
                    format!("chosen algorithms were worse than the default: {difference}"),
                ),
                Some(Standing::Resumed) => (Change::Resumed, "the time of the withdrawal is over".to_owned()),
                Some(Standing::Better) => {
                    (Change::HoldoutShrunk, format!("chosen algorithms are better than the default: {difference}"))
                }
                Some(Standing::NoLongerBetter) => {
                    (Change::HoldoutRestored, format!("the advantage is not certain any more: {difference}"))
                }
            };
            events.push(PolicyEvent { at: now, prefix: Some(prefix), change, reason });
        }
    }

    /// Drops the least recently active eighth of the destinations if there are too many.
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
