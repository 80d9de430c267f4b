//! A substitute for the BPF program in tests of the daemon.

use super::decisions::Decisions;
use super::kernel::{Override, Row, RowKey, TuneKernel};
use std::collections::BTreeMap;
use thalweg_policy::Prefix;
use thalweg_store::Problem;

/// Records the calls that it receives.
#[derive(Clone, Debug, Default)]
pub struct FakeKernel {
    /// Rows by destination.
    pub rows: BTreeMap<RowKey, Row>,
    /// Rows by network namespace.
    pub netns_rows: BTreeMap<u32, Row>,
    /// Overrides, in the order in which they were set.
    pub overrides: Vec<(Prefix, Override)>,
    /// Number of heartbeats.
    pub heartbeats: u64,
    /// Returned by [`TuneKernel::decisions`].
    pub decisions: Decisions,
    /// Whether the kernel rejects every row.
    pub is_full: bool,
}

impl FakeKernel {
    fn accepted(&self) -> Result<(), Problem> {
        if self.is_full {
            return Err(Problem::failed(
                "kernel-map",
                "the BPF maps",
                "a row".to_owned(),
                "memory for it",
                "check `free`",
            ));
        }
        Ok(())
    }
}

impl TuneKernel for FakeKernel {
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem> {
        self.accepted()?;
        self.rows.insert(key, row.clone());
        Ok(())
    }

    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem> {
        self.accepted()?;
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

    fn heartbeat(&mut self) {
        self.heartbeats += 1;
    }

    fn decisions(&mut self) -> Option<Decisions> {
        Some(self.decisions.clone())
    }
}
