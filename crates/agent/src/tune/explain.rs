//! Explains the algorithms of connections to a destination: the rules that the BPF program applies (bpf/flow/choose.h),
//! and its decisions so far.

use super::addresses::{Range, range_around, ranges_within};
use super::decision_engine::DecisionEngine;
use super::decisions::Closed;
use super::destination::{Arm, Decided, Destination, table};
use super::kernel::{Override, RowKey};
use super::phrases::{moment, percent};
use crate::flow::reason::Reason;
use crate::show::words::count;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use thalweg_policy::{ArmId, ArmView, Class, Direction, Guard, Prefix, Weights};
use thalweg_units::Time;

/// The state of a prefix in the agent's own network namespace, and in others that have data for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// One entry per namespace; the agent's own is the first, or the last if it has no data for the prefix.
    pub explained: Vec<Destination>,
}

/// How the BPF program selects the algorithm of a new connection, unless an application or a route has set it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decision {
    /// The prefix of an override, and its action.
    Override(Prefix, Override),
    Range(Range),
    NoChances,
    Draw,
}

impl Decision {
    fn reason(self) -> Reason {
        match self {
            Decision::Override(_, Override::Keep) => Reason::Keep,
            Decision::Override(..) => Reason::Override,
            Decision::Range(range) => range.reason,
            Decision::NoChances => Reason::NoChances,
            Decision::Draw => Reason::Treated,
        }
    }
}

impl DecisionEngine {
    /// Explains the algorithms of connections to an address or to a prefix.
    pub fn explain(&self, prefix: Prefix, now: Time) -> Explained {
        let leaf = self.setup.guard.tree.leaf_of(prefix);
        let knows = |netns: u32| {
            let guard = self.namespaces.get(&netns).and_then(|namespace| namespace.guard.as_ref());
            self.closed_to.of(netns, leaf).is_some()
                || guard.is_some_and(|guard| guard.account(leaf).is_some() || guard.knows_within(leaf))
        };
        let others = self.namespaces.keys().copied().filter(|&netns| netns != self.own && knows(netns));
        let mut all: Vec<u32> = std::iter::once(self.own).chain(others).collect();
        if !knows(self.own) {
            all.rotate_left(1);
        }
        Explained { explained: all.into_iter().map(|netns| self.destination(netns, prefix, now)).collect() }
    }

    /// Describes the destination that contains a prefix, with the decision about this prefix.
    pub(super) fn destination(&self, netns: u32, prefix: Prefix, now: Time) -> Destination {
        let leaf = self.setup.guard.tree.leaf_of(prefix);
        let guard = self.namespaces.get(&netns).and_then(|namespace| namespace.guard.as_ref());
        let decision = self.decision(guard, prefix);
        let drawn = guard.filter(|_| decision == Decision::Draw);
        let weights = drawn.map(|guard| {
            let from = self.row_for(netns, guard, prefix).unwrap_or(prefix);
            Direction::ALL.map(|direction| self.shown_weights(guard, from, prefix, direction, now))
        });
        let weight = |arm: ArmId, at: usize| match decision {
            Decision::Override(_, Override::Arm(set)) => Some(f64::from(u8::from(set == arm))),
            _ => weights.as_ref().map(|weights| weights[at].probability(arm)),
        };
        let account = guard.and_then(|guard| guard.account(leaf));
        let arm = |view: &ArmView| {
            let done = account.and_then(|account| account.arm(view.arm)).copied().unwrap_or_default();
            Arm {
                cc: self.setup.arms.arm(view.arm).name.clone(),
                weight_in: weight(view.arm, 0),
                weight_out: weight(view.arm, 1),
                connections: done.connections,
                effective: view.connections,
                greedy: view.greedy.unwrap_or(done.greedy),
                gain: view.gain,
                cost: view.cost,
                rtt_min_us: done.rtt_min.map(|rtt| rtt.as_micros()),
                delivery_rate_max_bps: done.delivery_rate_max.map(|rate| rate.0),
                segments: done.segments.0,
                retransmits: done.retransmits.0,
            }
        };
        let views = guard.map(|guard| guard.explain(leaf, now).arms).unwrap_or_default();
        // Unless an algorithm is drawn, a prefix within a destination is itself shown: other addresses of the
        // destination may have a different decision.
        let shown = if self.setup.guard.tree.leaf(prefix.address()) == leaf && decision != Decision::Draw {
            prefix
        } else {
            leaf
        };
        Destination {
            netns,
            netns_name: self.names.get(&netns).cloned(),
            prefix: shown.to_string(),
            decision: decision.reason().name().to_owned(),
            seen_us: account.map(|account| account.last_seen.as_micros()),
            holdout: weights.as_ref().map(|[incoming, _]| incoming.holdout()),
            withdrawn_until_us: guard.and_then(|guard| guard.withdrawn_until(leaf, now)).map(Time::as_micros),
            said: self.setup.override_around(prefix).map(|(_, what)| self.word(what)),
            difference: guard.and_then(|guard| guard.difference(leaf)),
            sentence: self.sentence(netns, guard, decision, prefix, now),
            closed: self.closed_to.of(netns, leaf).map(decided).unwrap_or_default(),
            arms: views.iter().map(arm).collect(),
        }
    }

    /// Returns the decision about a prefix. Overrides precede excluded ranges, as in the BPF program.
    fn decision(&self, guard: Option<&Guard>, prefix: Prefix) -> Decision {
        match self.setup.override_around(prefix) {
            Some((_, Override::DataCenter)) => {}
            Some((around, what)) => return Decision::Override(around, what),
            None => {
                if let Some(range) = range_around(prefix).filter(|_| !self.setup.has_private) {
                    return Decision::Range(range);
                }
            }
        }
        if guard.is_some() { Decision::Draw } else { Decision::NoChances }
    }

    /// Returns the destination whose estimate is the row for a prefix without a row of its own. `None` if the prefix
    /// has a row, or is larger than a destination.
    fn row_for(&self, netns: u32, guard: &Guard, prefix: Prefix) -> Option<Prefix> {
        let leaf = self.setup.guard.tree.leaf_of(prefix);
        let is_network = leaf != self.setup.guard.tree.leaf(leaf.address());
        let has_row = |prefix: &Prefix| self.kernel_rows.contains(&RowKey { netns, prefix: *prefix });
        if is_network || has_row(&leaf) {
            return None;
        }
        let network = self.setup.networks(leaf).find(has_row);
        let in_network = network.and_then(|network| self.representative(guard, network));
        in_network.or_else(|| self.namespaces.get(&netns).map(|namespace| self.unseen_destination(namespace)))
    }

    /// Returns the probabilities in the row of the destination `from` for a connection to `prefix`, without algorithms
    /// that cannot be set there.
    fn shown_weights(&self, guard: &Guard, from: Prefix, prefix: Prefix, direction: Direction, now: Time) -> Weights {
        let may_not = |arm: ArmId| !self.setup.may_use(&self.setup.arms.arm(arm).name, prefix);
        self.weights(guard, from, direction, now).without(guard.arms().default(), may_not)
    }

    fn sentence(&self, netns: u32, guard: Option<&Guard>, decision: Decision, prefix: Prefix, now: Time) -> String {
        let sentence = match decision {
            Decision::Override(around, Override::Arm(arm)) => self.overridden(around, arm),
            Decision::Override(around, _) => {
                format!("Its connections are left alone because of the override for {around}: keep = true.")
            }
            Decision::Range(Range { prefix: range, what, .. }) => format!(
                "Its connections are left alone and keep their default, because {range} ({what}) is excluded unless \
                 --private is set."
            ),
            Decision::NoChances => self.without_chances(netns),
            Decision::Draw => guard.map(|guard| self.drawn(netns, guard, prefix, now)).unwrap_or_default(),
        };
        sentence + &self.exceptions(decision, prefix)
    }

    fn overridden(&self, around: Prefix, arm: ArmId) -> String {
        let name = &self.setup.arms.arm(arm).name;
        let why = format!("because of the override for {around}: cc = \"{name}\"");
        if self.setup.is_dry_run {
            return format!("Dry run: nothing is set. All of its connections would get {name} {why}.");
        }
        let refused = self.decisions.get(&(Reason::Refused, Some(arm))).copied().unwrap_or(0);
        let refused = match refused {
            0 => String::new(),
            times => format!(
                " The kernel has refused to set {name} for {} connections, which keep their default.",
                count(times)
            ),
        };
        format!("All of its connections get {name} {why}.{refused}")
    }

    fn without_chances(&self, netns: u32) -> String {
        let why = match self.namespaces.get(&netns).and_then(|namespace| namespace.default.as_deref()) {
            Some(default) => {
                format!("{default}, the default of its network namespace, is not among the algorithms (--arms)")
            }
            None => "the default of its network namespace is unknown".to_owned(),
        };
        format!("Its connections are left alone, because {why}.")
    }

    fn drawn(&self, netns: u32, guard: &Guard, prefix: Prefix, now: Time) -> String {
        let mut sentence = self.without_some(guard, prefix, now).unwrap_or_else(|| guard.explain(prefix, now).sentence);
        if let Some(from) = self.row_for(netns, guard, prefix) {
            let [now_in, later_in] =
                [from, prefix].map(|from| self.shown_weights(guard, from, prefix, Direction::In, now));
            if now_in != later_in {
                let most = &self.setup.arms.arm(now_in.most()).name;
                sentence = format!(
                    "Until a connection to it has closed, {most} gets {} of new connections, as for other unknown \
                     destinations. Then: {sentence}",
                    percent(now_in.probability(now_in.most())),
                );
            }
        }
        if self.setup.is_dry_run { format!("Dry run: nothing is set. {sentence}") } else { sentence }
    }

    /// Explains the choice if an algorithm that the policy draws cannot be set; `None` if all can be set.
    pub(super) fn without_some(&self, guard: &Guard, prefix: Prefix, now: Time) -> Option<String> {
        let wanted = guard.weights(prefix, Class::default(), now);
        let name = |arm: ArmId| self.setup.arms.arm(arm).name.as_str();
        let why = |arm: ArmId| {
            if self.left_out.contains(&arm) {
                Some(format!("{} is left out, because the kernel has refused to set it", name(arm)))
            } else if !self.setup.may_use(name(arm), prefix) {
                let what = "it needs ECN, and no override for this prefix has data_center = true";
                Some(format!("{} is left out, because {what}", name(arm)))
            } else {
                None
            }
        };
        let out: Vec<String> = guard
            .arms()
            .iter()
            .filter(|(arm, _)| wanted.probability(*arm) > 0.0)
            .filter_map(|(arm, _)| why(arm))
            .collect();
        if out.is_empty() {
            return None;
        }
        let weights = self.shown_weights(guard, prefix, prefix, Direction::In, now);
        let (most, default) = (weights.most(), guard.arms().arm(guard.arms().default()).name.as_str());
        Some(format!(
            "{} gets {} of new connections: {}. {} are held out and keep {default}.",
            name(most),
            percent(weights.probability(most)),
            out.join(", and "),
            percent(weights.holdout()),
        ))
    }

    /// Describes the overrides and excluded ranges within a prefix.
    fn exceptions(&self, decision: Decision, prefix: Prefix) -> String {
        let overrides = self.setup.overrides.iter().filter(|(of, _)| *of != prefix && prefix.has(*of));
        let mut parts: Vec<String> = overrides.map(|(of, what)| format!("{of} ({})", self.word(*what))).collect();
        if matches!(decision, Decision::Draw | Decision::NoChances) && !self.setup.has_private {
            let is_said = |range: &Range| self.setup.override_around(range.prefix).is_some();
            parts.extend(
                ranges_within(prefix)
                    .filter(|range| !is_said(range))
                    .map(|range| format!("{} (left alone, {})", range.prefix, range.what)),
            );
        }
        if parts.is_empty() { String::new() } else { format!(" Exceptions within it: {}.", parts.join(", ")) }
    }

    /// Returns the text of an override.
    pub(super) fn word(&self, what: Override) -> String {
        match what {
            Override::Keep => "keep".to_owned(),
            Override::DataCenter => "data_center".to_owned(),
            Override::Arm(arm) => self.setup.arms.arm(arm).name.clone(),
        }
    }
}

fn decided(closed: &Closed) -> Vec<Decided> {
    let decided = |(reason, cc, connections): (Reason, &str, u64)| Decided {
        reason: reason.name().to_owned(),
        cc: Some(cc.to_owned()),
        connections,
    };
    closed.iter().map(decided).collect()
}

fn phrase(reason: &str) -> String {
    let reason = Reason::ALL.into_iter().find(|candidate| candidate.name() == reason);
    match reason {
        Some(Reason::Treated) => "drawn".to_owned(),
        Some(Reason::HeldOut) => "held out".to_owned(),
        Some(Reason::Override) => "set by an override".to_owned(),
        Some(Reason::Application) => "left alone, because an application had set TCP_CONGESTION".to_owned(),
        Some(Reason::Route) => "left alone, because a route sets the algorithm".to_owned(),
        Some(Reason::Loopback | Reason::Private | Reason::LinkLocal) => {
            "left alone, because --private was not set".to_owned()
        }
        Some(Reason::Keep) => "left alone by an override".to_owned(),
        Some(Reason::NoChances) => "left alone, because their network namespace had no probabilities".to_owned(),
        Some(Reason::Refused) => "kept their default, because the kernel refused the chosen algorithm".to_owned(),
        Some(Reason::Undecided) | None => "unknown".to_owned(),
    }
}

impl Explained {
    /// Formats the explanation and its data as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for destination in &self.explained {
            if self.explained.len() > 1 {
                let name = destination.netns_name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                writeln!(text, "network namespace {}{name}", destination.netns).expect("a string grows");
            }
            writeln!(text, "{}: {}", destination.prefix, destination.sentence).expect("a string grows");
            for decided in &destination.closed {
                let cc = decided.cc.as_deref().unwrap_or("unknown");
                writeln!(text, "  closed: {} with {cc}, {}", count(decided.connections), phrase(&decided.reason))
                    .expect("a string grows");
            }
            if destination.closed.is_empty() {
                text += "  closed: none since the agent started\n";
            }
            if let Some(until) = destination.withdrawn_until_us.filter(|_| destination.decision != "treated") {
                writeln!(text, "  withdrawn: the default is used until {}", moment(until)).expect("a string grows");
            }
            text.push('\n');
            if !destination.arms.is_empty() {
                text += &table(std::slice::from_ref(destination), false);
            }
        }
        text
    }
}
