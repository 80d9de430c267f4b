//! What the daemon tells the kernel's side (bpf/flow/choose.h): with which chance each destination gets each algorithm.

use super::decisions::Decisions;
use super::maps::{self, Slots};
use crate::problem::Problem;
use crate::record::{Program, monotonic_us};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::fmt::Display;
use std::time::Duration;
use thalweg_policy::{ArmId, Arms, Family, Prefix, Weights};
use thalweg_units::Bytes;

/// What the programs are told before the kernel takes them.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithms.
    pub arms: Arms,
    /// Lengths of the prefixes of IPv4 that may have rows, the longest first; at most [`maps::LENGTHS`].
    pub lengths_v4: Vec<u8>,
    /// The same of IPv6.
    pub lengths_v6: Vec<u8>,
    /// Is only decided, and nothing set?
    pub is_dry: bool,
    /// Are connections to private addresses chosen for as well?
    pub takes_private: bool,
    /// For how long the kernel goes on choosing when the daemon has died.
    pub grace: Duration,
    /// For how long at most a client's connections that are open together share one choice.
    pub together: Duration,
    /// Whether, and when, a connection at work is moved to another algorithm.
    pub loss_rule: Option<LossRule>,
    /// Connections that carried less say nothing of the path.
    pub least: Bytes,
}

/// The rule of bpftune's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRule {
    /// Who retransmits more than 2^-shift of its segments is moved; at least 1.
    pub shift: u8,
    /// To this algorithm.
    pub arm: ArmId,
}

/// A destination, in one network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The namespace's inode.
    pub netns: u32,
    /// The addresses: as long as destinations are told apart.
    pub prefix: Prefix,
}

/// The chances of a destination's new connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Of those that the peer opens.
    pub incoming: Weights,
    /// Of those that this host opens.
    pub outgoing: Weights,
}

/// What the operator has said of a prefix. The longest prefix that has an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Its connections are left alone.
    Keep,
    /// They get this algorithm, none is held out.
    Arm(ArmId),
    /// It is within a data centre: algorithms that need ECN may be chosen, and that its addresses are private is no reason to
    /// leave them alone.
    DataCenter,
}

/// The side that chooses.
pub trait Kernel {
    /// New connections to this destination get these chances.
    ///
    /// # Errors
    /// If prefixes of that length are not looked for, or the kernel refuses.
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem>;

    /// New connections of this namespace to all other destinations get these chances.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem>;

    /// The namespace has no chances any more: nothing is chosen there.
    fn forget_netns(&mut self, netns: u32);

    /// The operator's word for a prefix, in every namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem>;

    /// The operator says nothing of a prefix any more.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem>;

    /// The destination has no chances of its own any more.
    fn forget(&mut self, key: RowKey);

    /// The daemon is alive: the kernel goes on choosing for the grace time from now on.
    fn beat(&mut self);

    /// What was decided about connections that were opened since the start; `None`: it cannot be read.
    fn decisions(&mut self) -> Option<Decisions>;
}

/// The maps of the programs at work.
pub struct Maps {
    slots: Slots,
    lengths: [Vec<u8>; 2],
    grace_us: u64,
    heart: MapHandle,
    rows: MapHandle,
    netns_rows: MapHandle,
    overrides: MapHandle,
    decisions: MapHandle,
    words: u64,
}

impl Maps {
    /// Those of programs that were loaded with this choice. Nothing is chosen before the first [`Kernel::beat`].
    ///
    /// # Errors
    /// If there are no more file descriptors.
    pub fn of(program: &Program, choice: &Choice) -> Result<Maps, Problem> {
        Ok(Maps {
            slots: Slots::of(&choice.arms),
            lengths: [choice.lengths_v4.clone(), choice.lengths_v6.clone()],
            grace_us: u64::try_from(choice.grace.max(LEAST_GRACE).as_micros()).unwrap_or(u64::MAX),
            heart: program.map("heart")?,
            rows: program.map("rows")?,
            netns_rows: program.map("netns_rows")?,
            overrides: program.map("overrides")?,
            decisions: program.map("decisions")?,
            words: 0,
        })
    }
}

/// A daemon on a busy machine may be late by as much.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// The only entry of an array.
const FIRST: [u8; 4] = [0; 4];

fn refusal(what: impl Display, error: impl Display) -> Problem {
    Problem::failed(
        "kernel-map",
        "the kernel's side of tune",
        format!("{what} that it does not take: {error}"),
        "memory for it",
        "look at `free` and at the agent's memory limit",
    )
}

impl Kernel for Maps {
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem> {
        let lengths = &self.lengths[usize::from(key.prefix.family() == Family::V6)];
        if !lengths.contains(&key.prefix.length()) {
            let lengths: Vec<String> = lengths.iter().map(|length| format!("/{length}")).collect();
            return Err(Problem::failed(
                "prefix-length",
                "the kernel's side of tune",
                format!("chances for {}", key.prefix),
                &format!("prefixes of the lengths that are looked for: {}", lengths.join(", ")),
                "report it: this is a bug of thalweg-agent",
            ));
        }
        let written = self.rows.update(&maps::key(key), &maps::row(row, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal(format!("the chances of {}", key.prefix), error))
    }

    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem> {
        let written = self.netns_rows.update(&netns.to_ne_bytes(), &maps::row(row, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal("the chances of a network namespace", error))
    }

    fn forget_netns(&mut self, netns: u32) {
        // It may never have had any.
        let _ = self.netns_rows.delete(&netns.to_ne_bytes());
    }

    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem> {
        let is_new = self.overrides.lookup(&maps::prefix(prefix), MapFlags::ANY).is_ok_and(|found| found.is_none());
        let written = self.overrides.update(&maps::prefix(prefix), &maps::word(what, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal(format!("the override of {prefix}"), error))?;
        self.words += u64::from(is_new);
        Ok(())
    }

    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem> {
        let removed = self.overrides.delete(&maps::prefix(prefix));
        removed.map_err(|error| refusal(format!("that nothing is said of {prefix} any more"), error))?;
        self.words = self.words.saturating_sub(1);
        Ok(())
    }

    fn forget(&mut self, key: RowKey) {
        // The kernel may have forgotten it already.
        let _ = self.rows.delete(&maps::key(key));
    }

    fn beat(&mut self) {
        // An array that is there takes whatever is written.
        let _ = self.heart.update(&FIRST, &maps::heart(monotonic_us(), self.grace_us, self.words), MapFlags::ANY);
    }

    fn decisions(&mut self) -> Option<Decisions> {
        let cpus = self.decisions.lookup_percpu(&FIRST, MapFlags::ANY).ok()??;
        Some(maps::decisions(&cpus, &self.slots))
    }
}

/// What stands in for the kernel where only the daemon's side is looked at: it remembers what it was told.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Of destinations.
    pub rows: std::collections::BTreeMap<RowKey, Row>,
    /// Of namespaces.
    pub netns_rows: std::collections::BTreeMap<u32, Row>,
    /// The operator's words, in order.
    pub overrides: Vec<(Prefix, Override)>,
    /// How often the daemon was alive.
    pub beats: u64,
    /// What [`Kernel::decisions`] answers.
    pub decisions: Decisions,
}

#[cfg(test)]
impl Kernel for Told {
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem> {
        self.rows.insert(key, row.clone());
        Ok(())
    }

    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem> {
        self.netns_rows.insert(netns, row.clone());
        Ok(())
    }

    fn forget_netns(&mut self, netns: u32) {
        self.netns_rows.remove(&netns);
    }

    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem> {
        self.overrides.push((prefix, what));
        Ok(())
    }

    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem> {
        self.overrides.retain(|(of, _)| *of != prefix);
        Ok(())
    }

    fn forget(&mut self, key: RowKey) {
        self.rows.remove(&key);
    }

    fn beat(&mut self) {
        self.beats += 1;
    }

    fn decisions(&mut self) -> Option<Decisions> {
        Some(self.decisions.clone())
    }
}
