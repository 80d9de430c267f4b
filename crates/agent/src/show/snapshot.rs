//! The answers of a recording agent on its socket, and the source of its metrics.
//!
//! A client may be older or newer than the agent that it asks: what it does not know it leaves out, and what it misses
//! is empty.

use serde::{Deserialize, Serialize};

/// How recording goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The agent's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// When recording began, in UNIX time.
    pub since_us: u64,
    /// When this was looked at, in UNIX time.
    pub now_us: u64,
    /// The cgroup whose connections are recorded, as a path.
    pub cgroup: String,
    /// Sampling ratio: one in N connections is recorded.
    pub sampled_one_in: u64,
    /// How addresses are written: `whole`, `truncated` or `hashed`.
    pub addresses: String,
    /// The folder of the records.
    pub out: String,
    /// Where the metrics are served; empty: nowhere.
    pub listen: Option<String>,
    /// Connections that are recorded and open now.
    pub connections_open: u64,
    /// Part of the last minute in which this machine was off CPU because its hypervisor had others run; empty: not
    /// known.
    pub away_percent: Option<f64>,
    /// Why no connections are recorded now; empty: they are.
    pub not_attached: Option<String>,
    /// Why the settings could not be read again when that was last asked for; empty: they could, or it was not asked
    /// for.
    pub reload_trouble: Option<String>,
    /// What has happened since recording began.
    pub counters: Counters,
    /// How writing goes.
    pub writer: Writer,
    /// What recording costs outside of connections.
    pub usage: Usage,
    /// What the programs in the kernel cost; empty unless the kernel keeps that account (`kernel.bpf_stats_enabled`).
    pub programs: Vec<Program>,
}

/// What has happened since recording began. None of these ever falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Connections that opened and are recorded.
    pub opened: u64,
    /// Connections that were open already when recording began.
    pub joined: u64,
    /// Recorded connections that have closed.
    pub closed: u64,
    /// Connections left out by the sampling ratio.
    pub unsampled: u64,
    /// Rows of kind `close`.
    pub close_rows: u64,
    /// Rows of kind `interim`.
    pub interim_rows: u64,
    /// Rows of kind `transfer`.
    pub transfer_rows: u64,
    /// Events that the kernel could not hand over, because the buffer between was full.
    pub lost_events: u64,
    /// Connections that could not be recorded, because the kernel had no memory for their record.
    pub lost_connections: u64,
    /// Times that the machine's clock was set while recording.
    pub clock_steps: u64,
    /// Times that the program was attached again, to a cgroup that was removed and made anew or after it had been
    /// detached.
    pub reattached: u64,
}

/// How writing goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Writer {
    /// Rows in complete files, since recording began.
    pub rows_written: u64,
    /// Rows in memory that wait to be written.
    pub rows_waiting: u64,
    /// Rows that had to be dropped because they could not be written for too long.
    pub rows_lost: u64,
    /// Complete files in the folder now.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that made room for newer ones, since recording began.
    pub files_removed: u64,
    /// Why rows cannot be written now; empty: they can.
    pub trouble: Option<String>,
}

/// What recording costs outside of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// The process's memory: its resident set.
    pub process_bytes: u64,
    /// Processor time that the process has used.
    pub cpu_us: u64,
    /// Memory of the kernel's maps: the event queue and the connection table; empty: the kernel does not report it.
    pub maps_bytes: Option<u64>,
}

/// What a program in the kernel costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How long it ran in all, the kernel's own measuring included.
    pub run_ns: u64,
}

impl Program {
    /// How long one run takes, in nanoseconds; nothing if it did not run.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.run_ns as f64 / self.runs as f64)
    }
}

/// The open connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenConnections {
    /// When they were looked at, in UNIX time.
    pub looked_us: u64,
    /// How many there are, those left out of this answer included.
    pub total: u64,
    /// They, in the order that was asked for.
    pub connections: Vec<Open>,
}

/// An open connection. Addresses are whole: nothing of this is kept, and root alone may ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Open {
    /// The kernel's cookie of the socket, as in the records.
    pub connection: u64,
    /// Address and port on this machine.
    pub local: String,
    /// Address and port of the other end.
    pub remote: String,
    /// Congestion control.
    pub cc: String,
    /// TCP's state, as `ss` spells it: ESTAB, CLOSE-WAIT ...
    pub state: String,
    /// Network namespace: the number that `lsns` shows.
    pub netns: u64,
    /// Path below the cgroup root; empty: not known.
    pub cgroup: Option<String>,
    /// For how long it has been open; empty: since before recording began.
    pub age_us: Option<u64>,
    /// Bytes that the other end has acknowledged.
    pub acked_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bits per second acknowledged between the last two looks; empty: it was looked at once.
    pub goodput_bps: Option<f64>,
    /// Smoothed round-trip time; empty: none was measured yet.
    pub srtt_us: Option<u64>,
    /// Smallest round-trip time; empty: none was measured yet.
    pub min_rtt_us: Option<u64>,
    /// Congestion window.
    pub cwnd_packets: u64,
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Data segments that were retransmissions.
    pub retransmits: u64,
    /// The last sample of the delivery rate, in bits per second; empty: there was none.
    pub delivery_rate_bps: Option<u64>,
    /// Whether BBR looks short of CPU; empty: it is not BBR.
    pub cpu_limited: Option<bool>,
}

impl Open {
    /// The share of its data segments that were retransmissions; nothing if it has sent none.
    pub fn retransmit_ratio(&self) -> Option<f64> {
        (self.segments > 0).then(|| self.retransmits as f64 / self.segments as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::fixture;
    use serde_json::Value;

    #[test]
    fn a_response_of_another_version_is_parsed() {
        let answer = r#"{"version":"9.9","counters":{"opened":3,"teleported":1},"colour":"blue"}"#;
        let snapshot: Snapshot = serde_json::from_str(answer).unwrap();
        assert_eq!((snapshot.version.as_str(), snapshot.counters.opened, snapshot.pid), ("9.9", 3, 0));
    }

    #[test]
    fn the_reference_page_names_every_field_of_the_status() {
        let reference = include_str!("../../../../docs/reference/agent.md");
        let mut unchecked = vec![serde_json::to_value(fixture::agent().snapshot).unwrap()];
        while let Some(value) = unchecked.pop() {
            for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
                assert!(reference.contains(&format!("`{name}`")), "{name}");
            }
            match value {
                Value::Object(fields) => unchecked.extend(fields.into_iter().map(|(_, value)| value)),
                Value::Array(values) => unchecked.extend(values),
                _ => {}
            }
        }
    }
}
