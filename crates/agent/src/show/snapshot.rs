//! Answers of a recording agent on its socket.
//!
//! Client and agent may be of different versions: unknown fields are ignored, and missing ones have their default.

use serde::{Deserialize, Serialize};

/// The state of recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The agent's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Time when recording began, in UNIX time.
    pub since_us: u64,
    /// Time of this snapshot, in UNIX time.
    pub now_us: u64,
    /// Path of the cgroup whose connections are recorded.
    pub cgroup: String,
    /// Sampling ratio: one in N connections is recorded.
    pub sampled_one_in: u64,
    /// Form of recorded addresses: `whole`, `truncated` or `hashed`.
    pub addresses: String,
    /// The folder of the records.
    pub out: String,
    /// Address of the metrics endpoint; empty if metrics are not served.
    pub listen: Option<String>,
    /// Connections that are recorded and open now.
    pub connections_open: u64,
    /// Percentage of the last minute in which this machine was off CPU; empty if unknown.
    pub away_percent: Option<f64>,
    /// Reason why the BPF program is not attached to the cgroup now; empty if it is.
    pub not_attached: Option<String>,
    /// Reason why the last reload of the settings failed; empty if it succeeded or there was none.
    pub reload_trouble: Option<String>,
    /// Counters since recording began.
    pub counters: Counters,
    /// State of the writer.
    pub writer: Writer,
    /// Use of memory and CPU.
    pub usage: Usage,
    /// Cost of the BPF programs; empty unless the kernel measures it (`kernel.bpf_stats_enabled`).
    pub programs: Vec<Program>,
}

/// Counters since recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Connections that opened and are recorded.
    pub opened: u64,
    /// Recorded connections whose opening was not observed.
    pub joined: u64,
    /// Recorded connections that have closed.
    pub closed: u64,
    /// Connections that were not sampled.
    pub unsampled: u64,
    /// Rows of kind `close`.
    pub close_rows: u64,
    /// Rows of kind `interim`.
    pub interim_rows: u64,
    /// Rows of kind `transfer`.
    pub transfer_rows: u64,
    /// Events that were dropped, usually because the event queue was full.
    pub lost_events: u64,
    /// Failed attempts to record a connection, because the table was full (`--max-open`). Each scan tries again.
    pub lost_connections: u64,
    /// Steps of the wall clock while recording.
    pub clock_steps: u64,
    /// Number of times that the program was attached again.
    pub reattached: u64,
}

/// State of the writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Writer {
    /// Rows written to complete files since recording began.
    pub rows_written: u64,
    /// Rows in memory that wait to be written.
    pub rows_waiting: u64,
    /// Rows that were dropped because the queue was full.
    pub rows_lost: u64,
    /// Complete files in the folder now.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// Files that were deleted because of `--max-size` since recording began.
    pub files_removed: u64,
    /// The current problem; empty without one.
    pub trouble: Option<String>,
}

/// Memory and CPU time of the process, and memory of the BPF maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Resident memory of the process.
    pub process_bytes: u64,
    /// CPU time of the process.
    pub cpu_us: u64,
    /// Memory of the BPF maps; empty if the kernel does not report it.
    pub maps_bytes: Option<u64>,
}

/// Cost of a BPF program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Name.
    pub name: String,
    /// Number of runs.
    pub runs: u64,
    /// Total run time.
    pub run_ns: u64,
}

impl Program {
    /// Returns the mean run time in nanoseconds; `None` if the program did not run.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.run_ns as f64 / self.runs as f64)
    }
}

/// The recorded open connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenConnections {
    /// Time of the scan, in UNIX time.
    pub looked_us: u64,
    /// Number of recorded open connections, including those omitted from this answer.
    pub total: u64,
    /// The connections, in the requested order.
    pub connections: Vec<Open>,
}

/// An open connection. Addresses are complete, because only root and the agent's user may request them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Open {
    /// The kernel's cookie of the socket.
    pub connection: u64,
    /// Address and port on this machine.
    pub local: String,
    /// Address and port of the peer.
    pub remote: String,
    /// Congestion control.
    pub cc: String,
    /// TCP state, as `ss` prints it.
    pub state: String,
    /// Inode number of the network namespace.
    pub netns: u64,
    /// Path below the cgroup root; empty if unknown.
    pub cgroup: Option<String>,
    /// Time since the connection opened; empty if the opening was not observed.
    pub age_us: Option<u64>,
    /// Bytes that the peer has acknowledged.
    pub acked_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bits per second acknowledged since the previous request for open connections; empty without a suitable one.
    pub goodput_bps: Option<f64>,
    /// Smoothed round-trip time; empty before the first sample.
    pub srtt_us: Option<u64>,
    /// Smallest round-trip time; empty before the first sample.
    pub min_rtt_us: Option<u64>,
    /// Congestion window.
    pub cwnd_packets: u64,
    /// Data segments sent, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments, including those of the handshake.
    pub retransmits: u64,
    /// Latest sample of the delivery rate, in bits per second; empty before the first sample.
    pub delivery_rate_bps: Option<u64>,
    /// Whether BBR is short of CPU; empty if unknown, and for other algorithms.
    pub cpu_limited: Option<bool>,
}

impl Open {
    /// Returns the share of data segments that were retransmissions; `None` if none was sent.
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
