//! After the agent was killed: the watchdog (keeper.rs) holds its programs, and the kernel continues to choose for the
//! grace time. The state is read from the programs' maps.

use super::phrases::parts;
use super::wire::{self, Heartbeat};
use crate::flow::clock::monotonic_us;
use crate::flow::reason::Reason;
use crate::keeper::{Orphan, orphan_of};
use crate::show::words::age;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A watchdog at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Watchdog {
    /// Its process.
    pid: i32,
    /// For how long the kernel still chooses; empty: that cannot be read.
    chooses_for_us: Option<u64>,
    /// Connections that were opened since the agent began, by the decision; empty: they cannot be read.
    decided: Option<BTreeMap<&'static str, u64>>,
}

impl Watchdog {
    /// The watchdog of the agent that answered on a socket.
    pub fn find(socket: &Path) -> Option<Watchdog> {
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
        let heartbeat = map("heart").and_then(|map| map.lookup(&first, MapFlags::ANY).ok()?);
        let end_us = heartbeat.and_then(|bytes| Heartbeat::parse(&bytes)).map(|heartbeat| heartbeat.end_us());
        let cpus = map("decisions").and_then(|map| map.lookup_percpu(&first, MapFlags::ANY).ok()?);
        let named = |(reason, connections): (Reason, u64)| (reason.name(), connections);
        Some(Watchdog {
            pid,
            chooses_for_us: end_us.map(|end| end.saturating_sub(monotonic_us())),
            decided: cpus.map(|cpus| wire::reasons(&cpus).into_iter().map(named).collect()),
        })
    }

    /// Some lines.
    pub fn text(&self) -> String {
        let chooses = match self.chooses_for_us {
            Some(0) => "the kernel does not choose any more".to_owned(),
            Some(us) => format!("the kernel still chooses, with the last probabilities, for another {}", age(us)),
            None => "for how long the kernel still chooses is unknown".to_owned(),
        };
        let head = format!(
            "the agent was killed: {chooses}\n  watchdog      process {} holds its programs, and ends then\n",
            self.pid
        );
        match &self.decided {
            Some(decided) => {
                format!("{head}  opened        {}\n", parts(decided.iter().map(|(reason, count)| (*reason, *count))))
            }
            None => head,
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> String {
        format!("{:#}\n", serde_json::json!({ "tuning": false, "watchdog": self }))
    }
}
