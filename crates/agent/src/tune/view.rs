//! The output of `tune status`: collected from the engine, sent as JSON, printed as text. Unknown fields are ignored,
//! and missing ones are empty, because client and agent may be of different versions.

use super::decision_engine::{DecisionEngine, Namespace as TunedNamespace};
use super::decisions::Closed as ByReason;
use super::destination::{Decided, Destination, table};
use super::log::Logged;
use super::phrases::{moment, parts, percent};
use crate::flow::reason::Reason;
use crate::show::words::count;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use thalweg_policy::{ArmId, Difference, Guard, Policy, Prefix};
use thalweg_units::Time;

/// The learned state and the choices of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// UNIX time of this state.
    pub now_us: u64,
    /// The policy.
    pub policy: String,
    /// The algorithms.
    pub arms: Vec<String>,
    /// Algorithms that the kernel failed to set.
    pub left_out: Vec<String>,
    /// Share of connections that are held out, unless it is reduced for a prefix.
    pub holdout: f64,
    /// Whether decisions are made but not set.
    pub dry_run: bool,
    /// Whether algorithms are also chosen for loopback, private and link-local addresses.
    pub private: bool,
    /// Time for which the kernel continues to choose if the agent dies, in seconds.
    pub grace_s: f64,
    /// Whether the host is short of CPU.
    pub cpu_limited: bool,
    /// The operator's overrides.
    pub overrides: Vec<OverrideEntry>,
    /// The file of learned state.
    pub state: Saved,
    /// Reason why the kernel rejected a row of probabilities; empty if no row is rejected.
    pub trouble: Option<String>,
    /// Opened connections, by decision of the BPF program.
    pub decided: Vec<Decided>,
    /// Connections that have closed.
    pub closed: Vec<Closed>,
    /// Network namespaces.
    pub namespaces: Vec<Namespace>,
    /// Number of known destinations.
    pub destinations_known: u64,
    /// The most recently active destinations.
    pub destinations: Vec<Destination>,
    /// The latest changes, newest first.
    pub changes: Vec<Logged>,
}

/// An override of the operator for a prefix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverrideEntry {
    /// The prefix.
    pub prefix: String,
    /// `keep`, `data_center`, or the name of an algorithm.
    pub what: String,
}

/// State of the file of learned state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// The file.
    pub path: String,
    /// UNIX time of the last write; empty before the first one, and if the last one failed.
    pub saved_us: Option<u64>,
    /// Reason why the last write failed; empty if it did not fail.
    pub trouble: Option<String>,
}

/// Numbers of closed connections of an algorithm, by their role in the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Closed {
    /// The algorithm.
    pub cc: String,
    /// Connections for which an algorithm was drawn.
    pub treated: u64,
    /// Connections that were held out.
    pub held_out: u64,
    /// Connections that are not part of the comparison.
    pub untouched: u64,
    /// Number of these connections, by reason.
    pub because: BTreeMap<String, u64>,
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Inode number of the namespace, as `lsns` shows it.
    pub netns: u32,
    /// Whether it is the agent's own namespace.
    pub own: bool,
    /// Name of the namespace; empty if unknown.
    pub name: Option<String>,
    /// The namespace's default algorithm; empty if unknown.
    pub default: Option<String>,
    /// Whether the default is among the arms; otherwise no algorithm is drawn in the namespace.
    pub active: bool,
    /// Closed connections of the namespace.
    pub closed: Vec<Closed>,
    /// Number of known destinations.
    pub destinations: u64,
    /// Gain of treated connections over held-out ones, by IP version.
    pub differences: Vec<Comparison>,
}

impl Namespace {
    fn label(&self) -> String {
        match &self.name {
            Some(name) => format!(" ({name})"),
            None if self.own => String::new(),
            None => " (not the agent's own)".to_owned(),
        }
    }
}

/// The result of the comparison of a prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The prefix.
    pub prefix: Prefix,
    /// The comparison.
    #[serde(flatten)]
    pub difference: Difference,
}

impl DecisionEngine {
    /// Returns the status, with at most `limit` destinations and changes.
    pub fn status(&self, limit: usize, now: Time) -> Status {
        let setup = &self.setup;
        let name = |arm: &ArmId| setup.arms.arm(*arm).name.clone();
        let mut latest: Vec<(Time, u32, Prefix)> = Vec::new();
        for (&netns, namespace) in &self.namespaces {
            let destinations = namespace.guard.iter().flat_map(Guard::destinations);
            latest.extend(destinations.map(|(prefix, account)| (account.last_seen, netns, prefix)));
        }
        let destinations_known = latest.len() as u64;
        latest.sort_unstable_by_key(|&(at, netns, prefix)| (std::cmp::Reverse(at), netns, prefix));
        latest.truncate(limit);
        let own = self.namespaces.get(&self.own).and_then(|namespace| namespace.guard.as_ref());
        let decided = self.decisions.iter().map(|(&(reason, arm), &connections)| Decided {
            reason: reason.name().to_owned(),
            cc: arm.map(|arm| name(&arm)),
            connections,
        });
        Status {
            now_us: now.as_micros(),
            policy: own.map_or_else(String::new, |guard| guard.policy().name().to_owned()),
            arms: setup.arms.iter().map(|(_, arm)| arm.name.clone()).collect(),
            left_out: self.left_out.iter().map(name).collect(),
            holdout: setup.guard.holdout,
            dry_run: setup.is_dry_run,
            private: setup.has_private,
            grace_s: setup.grace.as_secs_f64(),
            cpu_limited: self.host.is_cpu_limited,
            overrides: setup
                .overrides
                .iter()
                .map(|(prefix, what)| OverrideEntry { prefix: prefix.to_string(), what: self.word(*what) })
                .collect(),
            state: Saved::default(),
            trouble: self.trouble().map(str::to_owned),
            decided: decided.collect(),
            closed: by_algorithm(&self.closed),
            namespaces: self.namespaces.iter().map(|(&netns, one)| self.namespace(netns, one)).collect(),
            destinations_known,
            destinations: latest.into_iter().map(|(_, netns, prefix)| self.destination(netns, prefix, now)).collect(),
            changes: self.log.last(limit),
        }
    }

    fn namespace(&self, netns: u32, tuned: &TunedNamespace) -> Namespace {
        let guard = tuned.guard.as_ref();
        let roots = ["0.0.0.0/0", "::/0"].map(|root| root.parse::<Prefix>().expect("prefixes"));
        let differences = |guard: &Guard| {
            let comparison = |prefix| guard.difference(prefix).map(|difference| Comparison { prefix, difference });
            roots.into_iter().filter_map(comparison).collect()
        };
        Namespace {
            netns,
            own: netns == self.own,
            name: self.names.get(&netns).cloned(),
            default: tuned.default.clone(),
            active: guard.is_some(),
            closed: by_algorithm(&tuned.closed),
            destinations: guard.map_or(0, |guard| guard.destinations().count() as u64),
            differences: guard.map(differences).unwrap_or_default(),
        }
    }
}

fn by_algorithm(closed: &ByReason) -> Vec<Closed> {
    let mut all: BTreeMap<&str, Closed> = BTreeMap::new();
    for (reason, cc, connections) in closed.iter() {
        let of = all.entry(cc).or_insert_with(|| Closed { cc: cc.to_owned(), ..Closed::default() });
        match reason {
            Reason::Treated => of.treated += connections,
            Reason::HeldOut => of.held_out += connections,
            _ => {
                of.untouched += connections;
                *of.because.entry(reason.name().to_owned()).or_default() += connections;
            }
        }
    }
    all.into_values().collect()
}

impl Closed {
    fn parts(&self) -> String {
        let groups = [("treated", self.treated), ("held_out", self.held_out)];
        parts(
            groups.into_iter().chain(self.because.iter().map(|(reason, connections)| (reason.as_str(), *connections))),
        )
    }
}

impl Status {
    /// Formats the status as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("tuning{}\n", if self.dry_run { " (dry run: nothing is set)" } else { "" });
        let mut line = |name: &str, what: String| writeln!(text, "  {name:<13} {what}").expect("a string grows");
        line("policy", format!("{}, {} held out", self.policy, percent(self.holdout)));
        let left_out = if self.left_out.is_empty() {
            String::new()
        } else {
            format!("; refused by the kernel and left out: {}", self.left_out.join(", "))
        };
        line("algorithms", self.arms.join(", ") + &left_out);
        line("opened", parts(self.decided.iter().map(|decided| (decided.reason.as_str(), decided.connections))));
        for closed in &self.closed {
            line("closed", format!("{}: {}", closed.cc, closed.parts()));
        }
        if self.cpu_limited {
            line("CPU", "short of CPU: algorithms that need a dedicated CPU are left out".to_owned());
        }
        for entry in &self.namespaces {
            line("netns", format!("{}{}: {}", entry.netns, entry.label(), entry.choice()));
            for closed in entry.closed.iter().filter(|_| self.namespaces.len() > 1) {
                line("", format!("closed {}: {}", closed.cc, closed.parts()));
            }
            for comparison in &entry.differences {
                line(
                    "",
                    format!(
                        "to {}, connections with a chosen algorithm were {}",
                        comparison.prefix, comparison.difference
                    ),
                );
            }
        }
        for entry in &self.overrides {
            line("override", format!("{}: {}", entry.prefix, entry.what));
        }
        let saved = match (&self.state.trouble, self.state.saved_us) {
            (Some(trouble), _) => format!("cannot be written: {trouble}"),
            (None, Some(us)) => format!("written {}", moment(us)),
            (None, None) => "not written yet".to_owned(),
        };
        line("state", format!("{}, {saved}", self.state.path));
        if let Some(trouble) = &self.trouble {
            line("trouble", trouble.clone());
        }
        let shown = self.destinations.len() as u64;
        if shown > 0 {
            writeln!(
                text,
                "\n{shown} of {} destinations, most recently active first\n",
                count(self.destinations_known)
            )
            .expect("a string grows");
            text += &table(&self.destinations, self.namespaces.len() > 1);
        }
        text + &self.latest_changes()
    }

    fn latest_changes(&self) -> String {
        let mut text = String::new();
        for change in &self.changes {
            let is_own = self.namespaces.iter().any(|entry| entry.own && Some(entry.netns) == change.netns);
            let place = if is_own { String::new() } else { change.place() };
            writeln!(text, "  {}  {place}{}", moment(change.event.at.as_micros()), change.event)
                .expect("a string grows");
        }
        if text.is_empty() { text } else { format!("\nchanges, latest first\n{text}") }
    }
}

impl Namespace {
    fn choice(&self) -> String {
        match &self.default {
            Some(default) if self.active => format!("default {default}, destinations: {}", count(self.destinations)),
            Some(default) => format!("nothing is chosen, because its default {default} is not among the algorithms"),
            None => "nothing is chosen, because its default is unknown".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
