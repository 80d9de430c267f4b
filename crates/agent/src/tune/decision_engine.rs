//! Converts the outcomes of closed connections to rows of probabilities, from which the kernel draws.
//!
//! Network namespaces have separate guards, because the same prefix may be a different network there, and the default
//! algorithm may differ. There are rows for destinations, for the networks around them, which are used for unseen
//! destinations, and for each namespace.
//!
//! Rows with new data and rows that an event affects are urgent. Other rows also change, with the data of their
//! neighbours and with time, so all rows are rewritten in rotation.

use super::decisions::{ByDestination, Closed, Decisions};
use super::kernel::{Row, RowKey, TuneKernel};
use super::log::Log;
use super::setup::Setup;
use crate::flow::reason::Reason;
use crate::log;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;
use std::sync::Arc;
use thalweg_policy::{
    ArmId, Change, Class, Direction, Family, Guard, Host, Outcome, PolicyEvent, Prefix, Tree, Weights,
};
use thalweg_store::Problem;
use thalweg_units::{Span, Time};

/// Maximum number of rows rewritten per tick: in rotation, and of urgent rows.
const ROUND: usize = 20;
const URGENT: usize = 1_000;

/// Interval at which the row of each network namespace is rewritten even without new data.
const ALL_EVERY: Span = Span::from_secs(2);

/// Maximum number of destinations in a network that are checked to find one without data, whose estimate is the
/// network's row.
const PROBED_DESTINATIONS: u32 = 8;

const MAX_NAMESPACES: usize = 256;

/// Off-CPU shares from which the host counts as short of CPU, and below which it no longer does.
const AWAY: f64 = 0.2;
const BACK: f64 = 0.1;

/// Function that returns the default algorithm of a network namespace.
pub type DefaultOf = Box<dyn Fn(u32) -> Option<String> + Send>;

/// The tuner's state: settings, learned state, rows in the kernel, and counts of decisions.
pub struct DecisionEngine {
    pub(super) setup: Setup,
    pub(super) own: u32,
    default_of: DefaultOf,
    pub(super) namespaces: BTreeMap<u32, Namespace>,
    pub(super) names: BTreeMap<u32, String>,
    pub(super) host: Host,
    /// Arms that the kernel failed to set.
    pub(super) left_out: BTreeSet<ArmId>,
    /// Rows that were passed to the kernel; it may have rejected or evicted some.
    pub(super) kernel_rows: BTreeSet<RowKey>,
    urgent: BTreeSet<RowKey>,
    /// Positions of the rotations through all rows and through the urgent ones.
    last: Option<RowKey>,
    last_urgent: Option<RowKey>,
    /// Time at which the rows of all namespaces were last written; zero: they are due.
    all_written: Time,
    /// Namespaces that are no longer tracked but may still have a row in the kernel.
    removed_namespaces: Vec<u32>,
    pub(super) log: Log,
    /// Decisions about opened connections.
    pub(super) decisions: Decisions,
    /// Decisions about closed connections.
    pub(super) closed: Closed,
    pub(super) closed_to: ByDestination,
    /// Rows whose latest write the kernel rejected, with the reason. Without a prefix, it is the row of a namespace.
    rejected: BTreeMap<(u32, Option<Prefix>), String>,
}

/// State of a network namespace.
pub(super) struct Namespace {
    /// `None` if the namespace's default algorithm is unknown or not among the arms; then no algorithm is drawn.
    pub guard: Option<Guard>,
    pub default: Option<String>,
    /// Numbers of outcomes of IPv4 and IPv6 connections.
    families: [u64; 2],
    pub closed: Closed,
    at: Time,
    has_news: bool,
}

impl DecisionEngine {
    /// Creates an engine without data; `own` is the network namespace of this process.
    pub fn new(setup: Setup, own: u32, default_of: DefaultOf) -> DecisionEngine {
        DecisionEngine {
            closed_to: ByDestination::new(setup.guard.most_prefixes),
            setup,
            own,
            default_of,
            namespaces: BTreeMap::new(),
            names: BTreeMap::new(),
            host: Host::default(),
            left_out: BTreeSet::new(),
            kernel_rows: BTreeSet::new(),
            urgent: BTreeSet::new(),
            last: None,
            last_urgent: None,
            all_written: Time::ZERO,
            removed_namespaces: Vec::new(),
            log: Log::default(),
            decisions: Decisions::new(),
            closed: Closed::default(),
            rejected: BTreeMap::new(),
        }
    }

    /// Restores the learned state of a namespace.
    ///
    /// # Errors
    /// If the learned state does not apply; the error names the difference.
    pub fn restore_from(&mut self, netns: u32, learned: Guard, now: Time) -> Result<(), &'static str> {
        self.register(netns, now);
        match self.namespaces.get_mut(&netns).and_then(|namespace| namespace.guard.as_mut()) {
            Some(guard) => guard.restore_from(learned),
            None => Err("the default is not among the arms"),
        }
    }

    /// Returns the learned states with their namespaces; `None` is the namespace of this process.
    pub fn learned(&self) -> impl Iterator<Item = (Option<u32>, &Guard)> {
        let guards = self.namespaces.iter().filter_map(|(netns, namespace)| Some((*netns, namespace.guard.as_ref()?)));
        guards.map(|(netns, guard)| (Some(netns).filter(|netns| *netns != self.own), guard))
    }

    /// Writes all overrides and rows to the kernel.
    ///
    /// # Errors
    /// If the kernel rejects an override.
    pub fn begin(&mut self, now: Time, kernel: &mut dyn TuneKernel) -> Result<(), Problem> {
        for &(prefix, what) in &self.setup.overrides {
            kernel.set_override(prefix, what)?;
        }
        self.register(self.own, now);
        let all = self.namespaces.iter().flat_map(|(&netns, namespace)| {
            let destinations = namespace.guard.iter().flat_map(Guard::destinations);
            let with_networks = |prefix: Prefix| self.setup.networks(prefix).chain([prefix]);
            destinations.flat_map(move |(prefix, _)| with_networks(prefix)).map(move |prefix| RowKey { netns, prefix })
        });
        let all: BTreeSet<RowKey> = all.collect();
        all.into_iter().for_each(|key| self.write_row(key, now, kernel));
        self.write_namespace_rows(now, kernel);
        Ok(())
    }

    /// Applies other settings, and keeps the learned states that still apply. Returns the difference if one does not
    /// apply.
    ///
    /// # Errors
    /// If the kernel rejects an override or its removal; others may then have been replaced.
    pub fn change(
        &mut self,
        setup: Setup,
        now: Time,
        kernel: &mut dyn TuneKernel,
    ) -> Result<Option<&'static str>, Problem> {
        let is_said = |prefix: &Prefix| setup.overrides.iter().any(|(of, _)| of == prefix);
        let before: BTreeSet<Prefix> = self.setup.overrides.iter().map(|(of, _)| *of).collect();
        for prefix in before.into_iter().filter(|prefix| !is_said(prefix)) {
            kernel.forget_override(prefix)?;
        }
        for &(prefix, what) in setup.overrides.iter().filter(|entry| !self.setup.overrides.contains(entry)) {
            kernel.set_override(prefix, what)?;
        }
        self.setup = setup;
        let mut reason = None;
        for namespace in self.namespaces.values_mut() {
            let Some(learned) = namespace.guard.take() else { continue };
            let default = learned.arms().arm(learned.arms().default()).name.clone();
            namespace.guard = new_guard(&self.setup, &default, self.host, now);
            if let Some(guard) = namespace.guard.as_mut() {
                reason = guard.restore_from(learned).err().or(reason);
            }
            namespace.has_news = true;
        }
        self.all_written = Time::ZERO;
        self.urgent.extend(&self.kernel_rows);
        Ok(reason)
    }

    /// Learns from a connection that has closed.
    pub fn observe(&mut self, netns: u32, outcome: &Outcome, now: Time) {
        self.register(netns, now);
        let Some(namespace) = self.namespaces.get_mut(&netns) else { return };
        namespace.families[usize::from(outcome.prefix.family() == Family::V6)] += 1;
        let Some(guard) = namespace.guard.as_mut() else { return };
        let events = guard.observe(outcome, now);
        namespace.has_news = true;
        let prefix = self.setup.guard.tree.leaf_of(outcome.prefix);
        let rows = self.setup.networks(prefix).chain([prefix]);
        self.urgent.extend(rows.map(|prefix| RowKey { netns, prefix }));
        for event in events {
            self.spread(netns, &event);
            self.note_change(netns, event);
        }
    }

    /// Counts the decision about a closed connection; `peer` is `None` if unknown.
    pub fn count(&mut self, netns: u32, peer: Option<IpAddr>, reason: Reason, cc: &Arc<str>, now: Time) {
        self.register(netns, now);
        self.closed.add(reason, cc);
        if let Some(namespace) = self.namespaces.get_mut(&netns) {
            namespace.closed.add(reason, cc);
        }
        if let Some(peer) = peer {
            self.closed_to.add(netns, self.setup.guard.tree.leaf(peer), reason, cc, now);
        }
    }

    /// Writes the rows that are due. `off_cpu` is the recent off-CPU share, from 0 to 1; `None` if unknown.
    pub fn tick(&mut self, now: Time, off_cpu: Option<f64>, kernel: &mut dyn TuneKernel) {
        self.update_host(now, off_cpu);
        if let Some(decisions) = kernel.decisions() {
            self.decisions = decisions;
        }
        let refused =
            self.decisions.keys().filter(|(reason, _)| *reason == Reason::Refused).filter_map(|(_, arm)| *arm);
        for arm in refused.collect::<Vec<ArmId>>() {
            self.leave_out(arm, now);
        }
        for _ in 0..URGENT.min(self.urgent.len()) {
            self.last_urgent = after(&self.urgent, self.last_urgent);
            let Some(key) = self.last_urgent else { break };
            self.urgent.remove(&key);
            self.write_row(key, now, kernel);
        }
        for _ in 0..ROUND.min(self.kernel_rows.len()) {
            self.last = after(&self.kernel_rows, self.last);
            let Some(key) = self.last else { break };
            self.write_row(key, now, kernel);
        }
        self.write_namespace_rows(now, kernel);
    }

    /// Registers network namespaces, so that algorithms are drawn there before a first connection has closed.
    pub fn scan_namespaces(&mut self, names: BTreeMap<u32, String>, now: Time) {
        self.names = names;
        let unregistered: Vec<u32> =
            self.names.keys().filter(|netns| !self.namespaces.contains_key(netns)).copied().collect();
        let capacity = MAX_NAMESPACES.saturating_sub(self.namespaces.len());
        let lacking = unregistered.len().saturating_sub(capacity);
        let capacity = capacity + self.drop_removed(lacking);
        unregistered.into_iter().take(capacity).for_each(|netns| self.register(netns, now));
    }

    /// Starts over in namespaces whose default algorithm has changed, because what was learned compares the arms with
    /// the former default.
    pub fn follow_defaults(&mut self, defaults: &BTreeMap<u32, String>, now: Time) {
        for (netns, default) in defaults {
            let Some(namespace) = self.namespaces.get_mut(netns) else { continue };
            if namespace.default.as_ref() == Some(default) {
                continue;
            }
            let of = if *netns == self.own { None } else { self.names.get(netns) };
            let of = of.map_or_else(String::new, |name| format!(" of {name}"));
            log::warning(&format!("the default algorithm{of} is now {default}: learning starts over"));
            namespace.guard = new_guard(&self.setup, default, self.host, now);
            namespace.default = Some(default.clone());
            namespace.has_news = true;
            self.urgent.extend(self.kernel_rows.iter().filter(|key| key.netns == *netns));
        }
    }

    /// Drops namespaces that no longer exist, at most this number, the least recently active first. Returns how many.
    fn drop_removed(&mut self, most: usize) -> usize {
        let is_removed = |netns: u32| netns != self.own && !self.names.contains_key(&netns);
        let removed = self.namespaces.iter().filter(|(number, _)| is_removed(**number));
        let mut removed: Vec<(Time, u32)> = removed.map(|(&number, namespace)| (namespace.at, number)).collect();
        removed.sort_unstable();
        removed.truncate(most);
        for (_, netns) in &removed {
            self.namespaces.remove(netns);
            self.removed_namespaces.push(*netns);
        }
        removed.len()
    }

    /// Registers a namespace, or its activity if it is registered.
    fn register(&mut self, netns: u32, now: Time) {
        if let Some(namespace) = self.namespaces.get_mut(&netns) {
            namespace.at = now;
            return;
        }
        let default = (self.default_of)(netns);
        let guard = default.as_deref().and_then(|default| new_guard(&self.setup, default, self.host, now));
        self.namespaces.insert(
            netns,
            Namespace { guard, default, families: [0; 2], closed: Closed::default(), at: now, has_news: true },
        );
        if self.namespaces.len() > MAX_NAMESPACES {
            let others = self.namespaces.iter().filter(|(number, _)| **number != self.own && **number != netns);
            if let Some(oldest) = others.min_by_key(|(_, namespace)| namespace.at).map(|(number, _)| *number) {
                self.namespaces.remove(&oldest);
                self.removed_namespaces.push(oldest);
            }
        }
    }

    fn note_change(&mut self, netns: u32, event: PolicyEvent) {
        let name = self.names.get(&netns).cloned();
        self.log.add(Some(netns), name, netns == self.own, event);
    }

    /// Marks all rows within the prefix of an event as urgent, unless the event concerns only the destination itself.
    fn spread(&mut self, netns: u32, event: &PolicyEvent) {
        let Some(around) = event.prefix else { return };
        if matches!(event.change, Change::PathChanged) {
            return;
        }
        self.urgent.extend(self.kernel_rows.iter().filter(|key| key.netns == netns && around.has(key.prefix)));
    }

    fn update_host(&mut self, now: Time, off_cpu: Option<f64>) {
        let Some(off_cpu) = off_cpu else { return };
        let is_cpu_limited = if self.host.is_cpu_limited { off_cpu >= BACK } else { off_cpu >= AWAY };
        if is_cpu_limited == self.host.is_cpu_limited {
            return;
        }
        self.host = Host { is_cpu_limited };
        let mut latest = None;
        self.all_written = Time::ZERO;
        for namespace in self.namespaces.values_mut() {
            if let Some(guard) = namespace.guard.as_mut() {
                latest = guard.set_host(self.host, now).or(latest);
            }
        }
        if let Some(event) = latest {
            self.log.add(None, None, true, event);
        }
        self.urgent.extend(&self.kernel_rows);
    }

    fn leave_out(&mut self, arm: ArmId, now: Time) {
        if !self.left_out.insert(arm) {
            return;
        }
        let name = self.setup.arms.arm(arm).name.clone();
        let reason =
            "the kernel refused to set it for a connection; restart the agent once the algorithm is available \
             again"
                .to_owned();
        let event = PolicyEvent { at: now, prefix: None, change: Change::LeftOut { arm: name }, reason };
        self.log.add(None, None, true, event);
        self.all_written = Time::ZERO;
        self.urgent.extend(&self.kernel_rows);
    }

    /// Writes the row of a destination or of a network. Removes it if its namespace has no guard, or the row no
    /// [`DecisionEngine::representative`].
    fn write_row(&mut self, key: RowKey, now: Time, kernel: &mut dyn TuneKernel) {
        let guard = self.namespaces.get(&key.netns).and_then(|namespace| namespace.guard.as_ref());
        let row = guard.and_then(|guard| Some(self.row(guard, self.representative(guard, key.prefix)?, now)));
        match row {
            Some(row) => {
                let result = kernel.set_row(key, &row);
                self.kernel_rows.insert(key);
                self.note(key.netns, Some(key.prefix), result);
                self.note_preference(key, &row, now);
            }
            None => {
                kernel.forget(key);
                self.kernel_rows.remove(&key);
                self.rejected.remove(&(key.netns, Some(key.prefix)));
            }
        }
    }

    fn note_preference(&mut self, key: RowKey, row: &Row, now: Time) {
        let guard = self.namespaces.get_mut(&key.netns).and_then(|namespace| namespace.guard.as_mut());
        let event = guard.and_then(|guard| guard.note_preference(key.prefix, &row.incoming, &row.outgoing, now));
        if let Some(mut event) = event {
            let guard = self.namespaces.get(&key.netns).and_then(|namespace| namespace.guard.as_ref());
            if let Some(reason) = guard.and_then(|guard| self.without_some(guard, key.prefix, now)) {
                event.reason = reason;
            }
            self.note_change(key.netns, event);
        }
    }

    /// Returns the destination whose probabilities a row holds; for a network, one without data within it. `None`
    /// without data for the row, or if no such destination is found.
    pub(super) fn representative(&self, guard: &Guard, prefix: Prefix) -> Option<Prefix> {
        let tree = &self.setup.guard.tree;
        let is_known = |prefix: &Prefix| guard.account(*prefix).is_some();
        if tree.leaf(prefix.address()) == prefix {
            return Some(prefix).filter(is_known);
        }
        if !guard.knows_within(prefix) {
            return None;
        }
        // The last destinations of a network are assumed to be the least likely to have data.
        let last = (0..PROBED_DESTINATIONS).map(|number| tree.leaf(last_but(prefix, number, tree)));
        last.take_while(|leaf| prefix.has(*leaf)).find(|leaf| !is_known(leaf))
    }

    /// Writes the rows of namespaces with new data, and periodically those of all namespaces, because rows also change
    /// with time.
    fn write_namespace_rows(&mut self, now: Time, kernel: &mut dyn TuneKernel) {
        if now.since(self.all_written) >= ALL_EVERY || now < self.all_written {
            self.all_written = now;
            self.namespaces.values_mut().for_each(|namespace| namespace.has_news = true);
        }
        for netns in std::mem::take(&mut self.removed_namespaces) {
            self.forget_netns(netns, kernel);
        }
        let with_news: Vec<u32> =
            self.namespaces.iter().filter(|(_, namespace)| namespace.has_news).map(|(&number, _)| number).collect();
        for netns in with_news {
            let Some(namespace) = self.namespaces.get_mut(&netns) else { continue };
            namespace.has_news = false;
            let namespace = &self.namespaces[&netns];
            let Some(guard) = namespace.guard.as_ref() else {
                self.forget_netns(netns, kernel);
                continue;
            };
            let result = kernel.set_netns_row(netns, &self.row(guard, self.unseen_destination(namespace), now));
            self.note(netns, None, result);
        }
    }

    fn forget_netns(&mut self, netns: u32, kernel: &mut dyn TuneKernel) {
        kernel.forget_netns(netns);
        self.rejected.remove(&(netns, None));
    }

    /// Returns a destination without data (unless connections to `::1` are tuned, or prefixes of destinations are very
    /// short), whose estimate therefore comes from others. Its first address is reserved (RFC 1122, section 3.2.1.3;
    /// RFC 4291, section 2.5.2), and of the address family with more outcomes.
    pub(super) fn unseen_destination(&self, namespace: &Namespace) -> Prefix {
        let [v4, v6] = namespace.families;
        let address = if v6 > v4 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        self.setup.guard.tree.leaf(address)
    }

    fn row(&self, guard: &Guard, prefix: Prefix, now: Time) -> Row {
        let weights = |direction| self.weights(guard, prefix, direction, now);
        Row { incoming: weights(Direction::In), outgoing: weights(Direction::Out) }
    }

    /// Returns the guard's probabilities without algorithms that the kernel failed to set. Algorithms that need ECN are
    /// included: the BPF program decides where they may be drawn.
    pub(super) fn weights(&self, guard: &Guard, prefix: Prefix, direction: Direction, now: Time) -> Weights {
        let weights = guard.weights(prefix, Class { direction, size: None }, now);
        weights.without(guard.arms().default(), |arm| self.left_out.contains(&arm))
    }

    fn note(&mut self, netns: u32, prefix: Option<Prefix>, result: Result<(), Problem>) {
        let row = (netns, prefix);
        if let Err(problem) = result {
            if self.rejected.is_empty() {
                log::error(&problem.to_string());
            }
            self.rejected.insert(row, problem.found);
        } else {
            self.rejected.remove(&row);
        }
    }

    /// Returns the reason why the kernel rejected a row; `None` if no row is rejected.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.rejected.values().next().map(String::as_str)
    }
}

/// Returns a guard without data that knows the host's state; `None` if the default is not among the arms.
fn new_guard(setup: &Setup, default: &str, host: Host, now: Time) -> Option<Guard> {
    let mut guard = setup.guard(default)?;
    let _ = guard.set_host(host, now);
    Some(guard)
}

/// Returns the key after `last`, cyclically.
fn after(keys: &BTreeSet<RowKey>, last: Option<RowKey>) -> Option<RowKey> {
    let from = last.map_or(Bound::Unbounded, Bound::Excluded);
    keys.range((from, Bound::Unbounded)).next().or_else(|| keys.first()).copied()
}

/// Returns an address in the destination at position `number` from the end of a network.
fn last_but(network: Prefix, number: u32, tree: &Tree) -> IpAddr {
    let step = u32::from(network.family().bits() - tree.leaf(network.address()).length());
    match network.address() {
        IpAddr::V4(first) => {
            let last = first.to_bits() | u32::MAX.checked_shr(network.length().into()).unwrap_or(0);
            Ipv4Addr::from_bits(last.wrapping_sub(number << step)).into()
        }
        IpAddr::V6(first) => {
            let last = first.to_bits() | u128::MAX.checked_shr(network.length().into()).unwrap_or(0);
            Ipv6Addr::from_bits(last.wrapping_sub(u128::from(number) << step)).into()
        }
    }
}

#[cfg(test)]
#[path = "decision_engine_tests.rs"]
pub mod tests;
