//! What `tune status` and `tune explain` show: taken from the brain, sent as JSON, written as text.
//!
//! A client may be older or newer than the agent that it asks: what it does not know it leaves out, and what it misses is empty.

use super::brain::Brain;
use super::kernel::Override;
use super::log::Logged;
use crate::record::words::{count, short, time};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};
use thalweg_policy::{ArmId, ArmView, Difference, Direction, Guard, Interval, Policy, Prefix};
use thalweg_units::Time;

/// What an agent has learned and chooses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// When it was looked at, in UNIX time.
    pub now_us: u64,
    /// The policy.
    pub policy: String,
    /// The algorithms.
    pub arms: Vec<String>,
    /// Those that could not be set, and are not chosen any more.
    pub left_out: Vec<String>,
    /// Share of connections that keep the system's default.
    pub holdout: f64,
    /// Whether nothing is set.
    pub dry_run: bool,
    /// Whether private addresses are chosen for.
    pub private: bool,
    /// For how long the kernel goes on if the agent dies.
    pub grace_s: f64,
    /// Whether the host is short of CPU.
    pub cpu_limited: bool,
    /// The operator's words.
    pub overrides: Vec<Said>,
    /// Where the learned state is kept, and when that was last written.
    pub state: Saved,
    /// Why the kernel does not have all that was decided; empty: it has.
    pub trouble: Option<String>,
    /// Connections that have closed.
    pub closed: Vec<Closed>,
    /// Network namespaces.
    pub namespaces: Vec<Namespace>,
    /// How many destinations are known.
    pub destinations_known: u64,
    /// The destinations that were heard of last.
    pub destinations: Vec<Destination>,
    /// The last changes, the newest first.
    pub changes: Vec<Logged>,
}

/// The operator's word for a prefix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// The prefix.
    pub prefix: String,
    /// `keep`, `data_center`, or the name of an algorithm.
    pub what: String,
}

/// How the learned state is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// The file.
    pub path: String,
    /// When it was written; empty: not yet.
    pub saved_us: Option<u64>,
    /// Why it cannot be written; empty: it can.
    pub trouble: Option<String>,
}

/// How many connections of an algorithm have closed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Closed {
    /// The algorithm.
    pub cc: String,
    /// Those that it was chosen for.
    pub treated: u64,
    /// Those that were held out.
    pub held_out: u64,
    /// Those that were left alone.
    pub untouched: u64,
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Its number, as `lsns` shows it.
    pub netns: u32,
    /// Whether it is the agent's own.
    pub own: bool,
    /// What it takes by itself; empty: none of the arms, so that nothing is chosen there.
    pub default: Option<String>,
    /// Destinations that are known.
    pub destinations: u64,
    /// What chosen connections got beyond those held out, over all destinations of IPv4 and of IPv6.
    pub differences: Vec<Told>,
}

/// What the comparison of a prefix says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The prefix.
    pub prefix: Prefix,
    /// The comparison.
    #[serde(flatten)]
    pub difference: Difference,
}

/// What is known of a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Destination {
    /// The network namespace.
    pub netns: u32,
    /// The destination.
    pub prefix: String,
    /// When a connection to it last closed; empty: never.
    pub seen_us: Option<u64>,
    /// Share held out.
    pub holdout: f64,
    /// Until when the default is back; empty: it is not.
    pub withdrawn_until_us: Option<u64>,
    /// The operator's word, if there is one.
    pub said: Option<String>,
    /// What chosen connections got beyond those held out; empty: nothing could be compared yet.
    pub difference: Option<Difference>,
    /// Why.
    pub sentence: String,
    /// Algorithm by algorithm.
    pub arms: Vec<Arm>,
}

/// An algorithm on the way to a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// The algorithm.
    pub cc: String,
    /// Its chance, for a connection that the peer opens.
    pub weight_in: f64,
    /// Its chance, for one that this host opens.
    pub weight_out: f64,
    /// Connections that have closed.
    pub connections: u64,
    /// Of those, what the policy goes by: old ones count for less.
    pub effective: f64,
    /// Connections that got it because it was taken to be the best: as the policy counts them, or while most were to get it.
    pub greedy: u64,
    /// What it is worth beside the default, as a difference of logarithms.
    pub gain: Option<Interval>,
    /// What it costs, where the policy goes by a cost.
    pub cost: Option<f64>,
    /// Smallest round-trip time.
    pub rtt_min_us: Option<u64>,
    /// Largest delivery rate.
    pub delivery_rate_max_bps: Option<u64>,
    /// Data segments sent.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
}

/// What is known of a prefix, in every network namespace that knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// Each, the agent's own first.
    pub explained: Vec<Destination>,
}

impl Brain {
    /// Everything, with so many destinations and changes.
    pub fn status(&self, limit: usize, now: Time) -> Status {
        let setup = &self.setup;
        let name = |arm: &ArmId| setup.arms.arm(*arm).name.clone();
        let mut latest: Vec<(Time, u32, Prefix)> = Vec::new();
        for (&netns, namespace) in &self.namespaces {
            let known = namespace.guard.iter().flat_map(Guard::destinations);
            latest.extend(known.map(|(prefix, account)| (account.last_seen, netns, prefix)));
        }
        let destinations_known = latest.len() as u64;
        latest.sort_unstable_by_key(|&(at, netns, prefix)| (std::cmp::Reverse(at), netns, prefix));
        latest.truncate(limit);
        let own = self.namespaces.get(&self.own).and_then(|namespace| namespace.guard.as_ref());
        let closed = setup.arms.iter().map(|(arm, _)| {
            let of = |group: usize| self.closed.get(&(arm, group)).copied().unwrap_or(0);
            Closed { cc: name(&arm), treated: of(0), held_out: of(1), untouched: of(2) }
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
                .map(|(prefix, what)| Said { prefix: prefix.to_string(), what: self.word(*what) })
                .collect(),
            state: Saved::default(),
            trouble: self.trouble.clone(),
            closed: closed.collect(),
            namespaces: self.namespaces.iter().map(|(&netns, one)| self.namespace(netns, one.guard.as_ref())).collect(),
            destinations_known,
            destinations: latest
                .into_iter()
                .filter_map(|(_, netns, prefix)| self.destination(netns, prefix, now))
                .collect(),
            changes: self.log.last(limit),
        }
    }

    /// Why connections to a prefix get what they get.
    pub fn explain(&self, prefix: Prefix, now: Time) -> Explained {
        let prefix = self.setup.guard.tree.leaf_of(prefix);
        let knows = |guard: &Guard| guard.account(prefix).is_some() || guard.knows_within(prefix);
        let others =
            self.namespaces.iter().filter(|(netns, one)| **netns != self.own && one.guard.as_ref().is_some_and(knows));
        let all = std::iter::once(self.own).chain(others.map(|(&netns, _)| netns));
        Explained { explained: all.filter_map(|netns| self.destination(netns, prefix, now)).collect() }
    }

    fn namespace(&self, netns: u32, guard: Option<&Guard>) -> Namespace {
        let roots = ["0.0.0.0/0", "::/0"].map(|root| root.parse::<Prefix>().expect("prefixes"));
        let differences = |guard: &Guard| {
            let told = |prefix| guard.difference(prefix).map(|difference| Told { prefix, difference });
            roots.into_iter().filter_map(told).collect()
        };
        Namespace {
            netns,
            own: netns == self.own,
            default: guard.map(|guard| guard.arms().arm(guard.arms().default()).name.clone()),
            destinations: guard.map_or(0, |guard| guard.destinations().count() as u64),
            differences: guard.map(differences).unwrap_or_default(),
        }
    }

    fn destination(&self, netns: u32, prefix: Prefix, now: Time) -> Option<Destination> {
        let guard = self.namespaces.get(&netns)?.guard.as_ref()?;
        let explanation = guard.explain(prefix, now);
        let may_not = |arm: ArmId| !self.setup.may_use(&self.setup.arms.arm(arm).name, prefix);
        let weights = |direction| self.weights(guard, prefix, direction, now).without(guard.arms().default(), may_not);
        let [incoming, outgoing] = Direction::ALL.map(weights);
        let account = guard.account(prefix);
        let arm = |view: &ArmView| {
            let done = account.and_then(|account| account.arm(view.arm)).copied().unwrap_or_default();
            Arm {
                cc: self.setup.arms.arm(view.arm).name.clone(),
                weight_in: incoming.chance(view.arm),
                weight_out: outgoing.chance(view.arm),
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
        let said = self.setup.override_of(prefix);
        Some(Destination {
            netns,
            prefix: prefix.to_string(),
            seen_us: account.map(|account| account.last_seen.as_micros()),
            holdout: incoming.holdout(),
            withdrawn_until_us: guard.withdrawn_until(prefix, now).map(Time::as_micros),
            said: said.map(|what| self.word(what)),
            difference: guard.difference(prefix),
            sentence: self.sentence(said, explanation.sentence),
            arms: explanation.arms.iter().map(arm).collect(),
        })
    }

    /// What goes before the policy's own sentence.
    fn sentence(&self, said: Option<Override>, sentence: String) -> String {
        match said {
            Some(Override::Keep) => "The operator has said that its connections are left alone.".to_owned(),
            Some(Override::Arm(arm)) => {
                format!("{} because the operator has said so.", self.setup.arms.arm(arm).name)
            }
            _ if self.setup.is_dry_run => format!("In a dry run nothing is set. {sentence}"),
            _ => sentence,
        }
    }

    fn word(&self, what: Override) -> String {
        match what {
            Override::Keep => "keep".to_owned(),
            Override::DataCenter => "data_center".to_owned(),
            Override::Arm(arm) => self.setup.arms.arm(arm).name.clone(),
        }
    }
}

/// A moment of UNIX time in UTC.
fn moment(us: u64) -> String {
    let moment = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(us)).to_string();
    moment.replace('T', " ").replace('Z', " UTC")
}

fn percent(share: f64) -> String {
    let digits = if share > 0.0 && share < 0.1 || share > 0.9 && share < 1.0 { 1 } else { 0 };
    format!("{:.digits$} %", 100.0 * share)
}

impl Status {
    /// A screenful.
    pub fn text(&self) -> String {
        let mut text = format!("tuning{}\n", if self.dry_run { ", but in a dry run: nothing is set" } else { "" });
        let mut line = |name: &str, what: String| writeln!(text, "  {name:<13} {what}").expect("a string grows");
        line("policy", format!("{}, {} held out", self.policy, percent(self.holdout)));
        let left_out = if self.left_out.is_empty() {
            String::new()
        } else {
            format!("; {} cannot be set, and is left out", self.left_out.join(", "))
        };
        line("algorithms", self.arms.join(", ") + &left_out);
        for one in &self.closed {
            let [treated, held_out, untouched] = [one.treated, one.held_out, one.untouched].map(count);
            line("closed", format!("{}: {treated} chosen, {held_out} held out, {untouched} left alone", one.cc));
        }
        if self.cpu_limited {
            line("CPU", "short: algorithms that need a whole one are left out".to_owned());
        }
        for one in &self.namespaces {
            let whose = if one.own { "" } else { " of another network namespace" };
            let what = match &one.default {
                Some(default) => format!("default {default}, destinations: {}", count(one.destinations)),
                None => "nothing is chosen, its default is none of the algorithms".to_owned(),
            };
            line("netns", format!("{}{whose}: {what}", one.netns));
            for told in &one.differences {
                line("", format!("to {} chosen ones were {}", told.prefix, told.difference));
            }
        }
        for said in &self.overrides {
            line("override", format!("{}: {}", said.prefix, said.what));
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
            writeln!(text, "\n{shown} of {} destinations, the latest first\n", count(self.destinations_known))
                .expect("a string grows");
            text += &table(&self.destinations, self.namespaces.len() > 1);
        }
        if !self.changes.is_empty() {
            text += "\nchanges, the latest first\n";
            for change in &self.changes {
                writeln!(text, "  {}  {}", moment(change.event.at.as_micros()), change.event).expect("a string grows");
            }
        }
        text
    }
}

impl Explained {
    /// A sentence or two, and what they rest on.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.explained {
            if self.explained.len() > 1 {
                writeln!(text, "network namespace {}", one.netns).expect("a string grows");
            }
            writeln!(text, "{}: {}\n", one.prefix, one.sentence).expect("a string grows");
            text += &table(std::slice::from_ref(one), false);
        }
        if text.is_empty() {
            text += "nothing is chosen: what the agent's network namespace takes by itself is none of the algorithms\n";
        }
        text
    }
}

const HEADING: [&str; 10] =
    ["DESTINATION", "CC", "IN", "OUT", "CLOSED", "GREEDY", "WORTH", "MINRTT", "MAXRATE", "RETRANS%"];

/// A line per destination and algorithm. What is not known is `-`.
fn table(destinations: &[Destination], with_netns: bool) -> String {
    let mut lines: Vec<[String; HEADING.len()]> = vec![HEADING.map(str::to_owned)];
    let mut notes: Vec<(usize, String)> = Vec::new();
    for one in destinations {
        let mut name = if with_netns { format!("{}@{}", one.prefix, one.netns) } else { one.prefix.clone() };
        for arm in &one.arms {
            let unknown = || "-".to_owned();
            let ratio = (arm.segments > 0).then(|| 100.0 * arm.retransmits as f64 / arm.segments as f64);
            lines.push([
                std::mem::take(&mut name),
                arm.cc.clone(),
                percent(arm.weight_in),
                percent(arm.weight_out),
                count(arm.connections),
                count(arm.greedy),
                worth(arm).unwrap_or_else(unknown),
                arm.rtt_min_us.map_or_else(unknown, time),
                arm.delivery_rate_max_bps.map_or_else(unknown, |bps| short(bps as f64)),
                ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
            ]);
        }
        notes.push((lines.len(), note(one)));
    }
    let widths: Vec<usize> =
        (0..HEADING.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
        if let Some((_, note)) = notes.iter().find(|(after, note)| *after == number + 1 && !note.is_empty()) {
            writeln!(text, "  {note}").expect("a string grows");
        }
    }
    text
}

/// A gain with its interval, as a factor; or a cost.
fn worth(arm: &Arm) -> Option<String> {
    if let Some(gain) = &arm.gain {
        let [mean, low, high] = [gain.mean, gain.low, gain.high].map(f64::exp);
        return Some(format!("x{mean:.2} ({low:.2}-{high:.2})"));
    }
    arm.cost.map(|cost| format!("cost {cost:.0}"))
}

/// What is to be said of all algorithms of a destination.
fn note(one: &Destination) -> String {
    let mut parts = Vec::new();
    if let Some(said) = &one.said {
        parts.push(format!("the operator has said: {said}"));
    }
    if let Some(until) = one.withdrawn_until_us {
        parts.push(format!("the default is back until {}", moment(until)));
    }
    if let Some(difference) = &one.difference {
        parts.push(format!("chosen ones were {difference}, beside those held out ({})", percent(one.holdout)));
    }
    parts.join("; ")
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
