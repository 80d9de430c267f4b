//! The maps through which the daemon controls the BPF program (bpf/flow/choose.h).

use super::decisions::Decisions;
use super::kernel::{Choice, Override, Row, RowKey, TuneKernel};
use super::wire::{self, Slots};
use crate::flow::clock::monotonic_us;
use crate::flow::program::Program;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::fmt::Display;
use std::time::Duration;
use thalweg_policy::{Family, Prefix};
use thalweg_store::Problem;

/// Handles of the maps of the loaded programs.
pub struct Maps {
    slots: Slots,
    lengths: [Vec<u8>; 2],
    grace_us: u64,
    heartbeat: MapHandle,
    rows: MapHandle,
    netns_rows: MapHandle,
    overrides: MapHandle,
    decisions: MapHandle,
    words: u64,
}

impl Maps {
    /// Opens the maps of programs that were loaded with this choice. No algorithm is chosen before the first
    /// [`TuneKernel::heartbeat`].
    ///
    /// # Errors
    /// If a map cannot be opened.
    pub fn of(program: &Program, choice: &Choice) -> Result<Maps, Problem> {
        Ok(Maps {
            slots: Slots::of(&choice.arms),
            lengths: [choice.lengths_v4.clone(), choice.lengths_v6.clone()],
            grace_us: u64::try_from(choice.grace.max(MIN_GRACE).as_micros()).unwrap_or(u64::MAX),
            heartbeat: program.map("heartbeat")?,
            rows: program.map("rows")?,
            netns_rows: program.map("netns_rows")?,
            overrides: program.map("overrides")?,
            decisions: program.map("decisions")?,
            words: 0,
        })
    }
}

/// Minimum grace time, because heartbeats may be late on a busy machine.
const MIN_GRACE: Duration = Duration::from_secs(2);

/// Key of the only entry of an array.
const FIRST: [u8; 4] = [0; 4];

fn refusal(what: impl Display, error: impl Display) -> Problem {
    Problem::failed(
        "kernel-map",
        "the BPF maps of tune",
        format!("{what}, which the kernel refuses: {error}"),
        "kernel memory for the entry",
        "check `free` and the agent's memory limit",
    )
}

impl TuneKernel for Maps {
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem> {
        let lengths = &self.lengths[usize::from(key.prefix.family() == Family::V6)];
        if !lengths.contains(&key.prefix.length()) {
            let lengths: Vec<String> = lengths.iter().map(|length| format!("/{length}")).collect();
            return Err(Problem::failed(
                "prefix-length",
                "the BPF maps of tune",
                format!("probabilities for {}", key.prefix),
                &format!("prefixes of the supported lengths: {}", lengths.join(", ")),
                "please report it: this is a bug in thalweg-agent",
            ));
        }
        let written = self.rows.update(&wire::key(key), &wire::row(row, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal(format!("the probabilities of {}", key.prefix), error))
    }

    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem> {
        let written = self.netns_rows.update(&netns.to_ne_bytes(), &wire::row(row, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal("the probabilities of a network namespace", error))
    }

    fn forget_netns(&mut self, netns: u32) {
        // The error is ignored: the namespace may have had no row.
        let _ = self.netns_rows.delete(&netns.to_ne_bytes());
    }

    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem> {
        let is_new = self.overrides.lookup(&wire::prefix(prefix), MapFlags::ANY).is_ok_and(|entry| entry.is_none());
        let written = self.overrides.update(&wire::prefix(prefix), &wire::word(what, &self.slots), MapFlags::ANY);
        written.map_err(|error| refusal(format!("the override of {prefix}"), error))?;
        self.words += u64::from(is_new);
        Ok(())
    }

    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem> {
        let removed = self.overrides.delete(&wire::prefix(prefix));
        removed.map_err(|error| refusal(format!("the removal of the override of {prefix}"), error))?;
        self.words = self.words.saturating_sub(1);
        Ok(())
    }

    fn forget(&mut self, key: RowKey) {
        // The error is ignored: the kernel may have removed the row already.
        let _ = self.rows.delete(&wire::key(key));
    }

    fn heartbeat(&mut self) {
        // Writes to the entry of an array map do not fail.
        let _ =
            self.heartbeat.update(&FIRST, &wire::heartbeat(monotonic_us(), self.grace_us, self.words), MapFlags::ANY);
    }

    fn decisions(&mut self) -> Option<Decisions> {
        let cpus = self.decisions.lookup_percpu(&FIRST, MapFlags::ANY).ok()??;
        Some(wire::decisions(&cpus, &self.slots))
    }
}
