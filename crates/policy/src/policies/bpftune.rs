//! The policy of Oracle's bpftune for TCP connections (its tuner `tcp_conn`).
//!
//! - It chooses an arm only from the fourth connection to a key on.
//! - The arm with the lowest cost is chosen, at random among equals; one connection in twenty uses a random arm.
//! - The cost of a connection is `S (min_rtt - lowest) / lowest + S (largest rate of all - largest rate of the arm) /
//!   largest rate of all` with S = 10^6, in whole numbers. The arm's cost moves towards it by a fraction that
//!   [`BpftuneSettings::learning_rate`] sets; a cost of zero is replaced with it. The cost of an untried arm is zero,
//!   so it is tried next.
//! - A connection that retransmits more than 1/64 of its segments is switched to BBR immediately.
//!
//! Not implemented: thin linear timeouts, which it also sets on lossy connections. Difference: bpftune counts
//! connections when they open, this implementation when they close.
//!
//! Source: bpftune-tcp-conn(8) and src/tcp_conn_tuner.bpf.c of <https://github.com/oracle/bpftune>.

use crate::arm::{ArmId, Arms};
use crate::outcome::{Class, Group, Loss, Outcome};
use crate::policy::{ArmView, Explanation, Policy, bare_views, percent};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::Time;

/// Scale of both terms of the cost.
const SCALE: i64 = 1_000_000;

/// Key by which statistics are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BpftuneKey {
    /// The route's gateway, as in version 0.4. All destinations of an IP version count as behind one gateway.
    Gateway,
    /// The destination, as documented in bpftune's manual page.
    Destination,
}

/// Settings of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BpftuneSettings {
    /// Key by which statistics are kept.
    pub key: BpftuneKey,
    /// Learning rate from 0 to 4: a sample moves the cost by 1/64, 1/32, 1/16, 1/8 or 1/4 of the difference.
    pub learning_rate: u8,
    /// Number, from 1, of the first connection to a key for which the policy chooses an arm.
    pub min_instances: u64,
    /// Connections that retransmit more than 2^-drop_shift of their segments are lossy.
    pub drop_shift: u8,
    /// Exploration ratio: one in N connections uses a random arm.
    pub explore_one_in: u32,
    /// Whether lossy connections are switched to BBR.
    pub has_loss_rule: bool,
}

impl Default for BpftuneSettings {
    fn default() -> BpftuneSettings {
        BpftuneSettings {
            key: BpftuneKey::Gateway,
            learning_rate: 4,
            min_instances: 4,
            drop_shift: 6,
            explore_one_in: 20,
            has_loss_rule: true,
        }
    }
}

/// The policy of bpftune, for comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bpftune {
    arms: Arms,
    settings: BpftuneSettings,
    hosts: BTreeMap<Prefix, Host>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Host {
    instances: u64,
    rtt_min_us: u64,
    /// Maximum rate in bytes per microsecond, bpftune's unit: below 1 MB/s it is 0.
    rate: u64,
    arms: Vec<Metric>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Metric {
    cost: i64,
    count: u64,
    greedy: u64,
    rate: u64,
}

impl Bpftune {
    /// Creates the policy without data.
    pub fn new(arms: Arms, settings: BpftuneSettings) -> Bpftune {
        Bpftune { arms, settings, hosts: BTreeMap::new() }
    }

    /// Restores the learned state of another instance; returns false if its statistics have other keys.
    pub(crate) fn restore_from(&mut self, other: Bpftune) -> bool {
        let is_same = self.settings.key == other.settings.key;
        if is_same {
            self.hosts = other.hosts;
        }
        is_same
    }

    fn key(&self, prefix: Prefix) -> Prefix {
        match self.settings.key {
            BpftuneKey::Gateway => prefix.cut(0),
            BpftuneKey::Destination => prefix,
        }
    }

    /// Returns the statistics for a destination; `None` without any, or before connection `min_instances`.
    fn host(&self, prefix: Prefix) -> Option<&Host> {
        // The connection that is about to open counts too.
        self.hosts.get(&self.key(prefix)).filter(|host| host.instances + 1 >= self.settings.min_instances)
    }

    fn cheapest(host: &Host) -> Vec<usize> {
        let least = host.arms.iter().map(|metric| metric.cost).min().unwrap_or(0);
        (0..host.arms.len()).filter(|&number| host.arms[number].cost == least).collect()
    }
}

impl Policy for Bpftune {
    fn name(&self) -> &'static str {
        "bpftune"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        let key = self.key(outcome.prefix);
        let (arms, settings) = (self.arms.len(), self.settings);
        let host =
            self.hosts.entry(key).or_insert_with(|| Host { arms: vec![Metric::default(); arms], ..Host::default() });
        host.instances += 1;
        if host.instances < settings.min_instances || outcome.group != Group::Treated {
            return Vec::new();
        }
        let Some((rtt, rate)) = outcome.rtt_min.zip(outcome.delivery_rate) else { return Vec::new() };
        let (rtt_us, rate) = (rtt.as_micros(), rate.0 / 8_000_000);
        let arm = outcome.arm.index();
        let is_cheapest = Bpftune::cheapest(host).contains(&arm);
        let metric = &mut host.arms[arm];
        metric.rate = metric.rate.max(rate);
        if host.rtt_min_us == 0 || rtt_us < host.rtt_min_us {
            host.rtt_min_us = rtt_us;
        }
        host.rate = host.rate.max(metric.rate);
        let part = |above: u64, total: u64| if total == 0 { 0 } else { above as i64 * SCALE / total as i64 };
        let cost = part(rtt_us - host.rtt_min_us, host.rtt_min_us) + part(host.rate - metric.rate, host.rate);
        let shift = 6 - settings.learning_rate.min(4);
        metric.cost = if metric.cost == 0 { cost } else { metric.cost + ((cost - metric.cost) >> shift) };
        metric.count += 1;
        metric.greedy += u64::from(is_cheapest);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        let Some(host) = self.host(prefix) else { return Weights::only(&self.arms, self.arms.default()) };
        let explore = 1.0 / f64::from(self.settings.explore_one_in.max(1));
        let cheapest = Bpftune::cheapest(host);
        let mut wishes = vec![explore / self.arms.len() as f64; self.arms.len()];
        for &number in &cheapest {
            wishes[number] += (1.0 - explore) / cheapest.len() as f64;
        }
        Weights::of(&wishes)
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let mut arms = bare_views(&self.arms, &weights);
        let Some(host) = self.host(prefix) else {
            let few = self.hosts.get(&self.key(prefix)).map_or(0, |host| host.instances);
            let sentence = format!(
                "{few} connections have closed; the policy chooses from connection {} on.",
                self.settings.min_instances
            );
            return Explanation { prefix, sentence, arms };
        };
        for (view, metric) in arms.iter_mut().zip(&host.arms) {
            *view = ArmView {
                connections: metric.count as f64,
                greedy: Some(metric.greedy),
                cost: Some(metric.cost as f64),
                ..view.clone()
            };
        }
        let most = weights.most();
        let (name, cost) = (&self.arms.arm(most).name, host.arms[most.index()].cost);
        let sentence = format!(
            "{name} gets {} of new connections because its cost is the lowest, {cost}.",
            percent(weights.probability(most))
        );
        Explanation { prefix, sentence, arms }
    }

    fn on_loss(&self, loss: &Loss) -> Option<ArmId> {
        let bbr = self.arms.find("bbr")?;
        let is_lossy = loss.retransmits.0 > loss.segments_out.0 >> self.settings.drop_shift.min(63);
        (self.settings.has_loss_rule && is_lossy && loss.arm != bbr).then_some(bbr)
    }
}
