//! Status after the agent was killed, while a watchdog holds its programs.

use super::phrases::parts;
use super::wire::{self, Heartbeat};
use crate::flow::clock::monotonic_us;
use crate::flow::reason::Reason;
use crate::show::words::age;
use crate::watchdog::{Orphan, orphan_of};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// State of a watchdog whose agent was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchdogStatus {
    pid: i32,
    /// Remaining time in which the kernel chooses; empty if it cannot be read.
    chooses_for_us: Option<u64>,
    /// Connections opened since the agent started, by decision; empty if they cannot be read.
    decided: Option<BTreeMap<&'static str, u64>>,
}

impl WatchdogStatus {
    /// Returns the status of the watchdog of the agent with this socket, if there is one.
    pub fn find(socket: &Path) -> Option<WatchdogStatus> {
        let Orphan { pid, program } = orphan_of(socket)?;
        let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
        let program = ProgInfoIter::with_query_opts(with_maps).find(|info| info.id == program);
        let maps: Vec<MapHandle> = program
            .map(|info| info.map_ids)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|map| MapHandle::from_map_id(map).ok())
            .collect();
        let map = |name: &str| maps.iter().find(|map| map.name() == name);
        let first = 0u32.to_ne_bytes();
        let heartbeat = map("heartbeat").and_then(|map| map.lookup(&first, MapFlags::ANY).ok()?);
        let end_us = heartbeat.and_then(|bytes| Heartbeat::parse(&bytes)).map(|heartbeat| heartbeat.end_us());
        let cpus = map("decisions").and_then(|map| map.lookup_percpu(&first, MapFlags::ANY).ok()?);
        let named = |(reason, connections): (Reason, u64)| (reason.name(), connections);
        Some(WatchdogStatus {
            pid,
            chooses_for_us: end_us.map(|end| end.saturating_sub(monotonic_us())),
            decided: cpus.map(|cpus| wire::reasons(&cpus).into_iter().map(named).collect()),
        })
    }

    /// Returns the status as lines of text.
    pub fn text(&self) -> String {
        let chooses = match self.chooses_for_us {
            Some(0) => "the kernel no longer chooses algorithms".to_owned(),
            Some(us) => format!("the kernel chooses algorithms with the last probabilities for another {}", age(us)),
            None => "it is unknown how long the kernel continues to choose algorithms".to_owned(),
        };
        let head = format!(
            "the agent was killed: {chooses}\n  watchdog      process {} holds the BPF programs until then\n",
            self.pid
        );
        match &self.decided {
            Some(decided) => {
                format!("{head}  opened        {}\n", parts(decided.iter().map(|(reason, count)| (*reason, *count))))
            }
            None => head,
        }
    }

    /// Returns the status as JSON.
    pub fn json(&self) -> String {
        format!("{:#}\n", serde_json::json!({ "tuning": false, "watchdog": self }))
    }
}
