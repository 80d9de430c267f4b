//! The protocol between engine and host: JSON objects, one per line, on the host's standard input and output.
//!
//! ```text
//!  engine                                  host
//!  configure {role, …}          ──►
//!                               ◄──        configured {sysctls, cc, …}      or failed {code, message, hint}
//!  clock                        ──►                                          any number of times
//!                               ◄──        clock {monotonic_ns}
//!  start {at_monotonic_ns}      ──►
//!                               ◄──        over {flow}                       a flow is complete
//!  over {flow}                  ──►                                          a flow of another host is complete
//!  stop                         ──►
//!                               ◄──        flow, sample, state, queue …      any number of rows
//!                               ◄──        stopped {measured, untrustworthy}
//! ```
//!
//! A host executes commands until its standard input ends, and then exits immediately, even within a command, so that
//! it does not outlive the engine. A host that cannot continue reports `failed` and exits. Rows of tables follow after
//! `stop`, so that reporting them takes no time from the experiment; their times are relative to the start.
//!
//! The same lines are sent over a pipe or a guest's serial port.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use thalweg_plan::plan::{Experiment, Step, Traces};
use thalweg_trace::{QueueCounters, QueueRow};
use thalweg_units::Span;

/// A command to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Prepare the experiment, without sending.
    Configure(Box<Configuration>),
    /// Report the time of the host's clock: hosts in guests have separate clocks.
    Clock,
    /// Start the experiment.
    Start {
        /// Reading of the host's CLOCK_MONOTONIC that is time zero; `None` if time zero is the receipt of this command.
        at_monotonic_ns: Option<u64>,
    },
    /// A flow of another host is complete, so flows that repeat until its end open no more connections.
    Over {
        /// Name of the flow.
        flow: String,
    },
    /// Stop the experiment, and report the results.
    Stop,
}

/// Role and settings of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Kernel settings to apply first, by name (`net.ipv4.tcp_wmem`), in the host's network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// The experiment.
    pub experiment: Experiment,
    /// Role of the host in the experiment.
    pub role: Role,
}

/// Role of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// A host at an end of the path, which may send and receive data.
    End {
        /// Name of the host in the scenario.
        host: String,
        /// Flows whose data it sends.
        sends: Vec<Outgoing>,
        /// Destination of the background traffic in its direction; `None` if it sends none.
        background: Option<IpAddr>,
        /// Indices in the plan of the flows whose data it receives; `None` if it does not listen.
        receives: Option<Vec<usize>>,
        /// TCP port for listening and connecting; UDP uses the same number.
        port: u16,
    },
    /// A relay, which carries packets through emulated links.
    Relay {
        /// Interfaces towards senders.
        senders: Vec<Port>,
        /// Interface towards the receiver.
        receiver: Port,
        /// The plan's capacity traces.
        traces: Traces,
        /// File for the capture of the packets offered to the links; `None` without a capture.
        capture: Option<PathBuf>,
    },
    /// A host that runs the programs of flows.
    Programs {
        /// Flows whose servers it runs, and the address of this host.
        serves: Vec<Outgoing>,
        /// Flows whose clients it runs, and the addresses of their servers.
        runs: Vec<Outgoing>,
        /// Folder for the output of the programs.
        folder: PathBuf,
        /// Whether the host is in a guest, whose cached files must be flushed before it exits.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_guest: bool,
    },
    /// A meter, which measures the packets of programs at both ends of the path.
    Meter {
        /// Interfaces that it taps.
        points: Vec<MeterPoint>,
        /// Servers whose packets it measures.
        servers: Vec<Served>,
    },
    /// An observer of the flows of a session.
    Observer {
        /// Namespaces of the hosts at the ends of the path.
        hosts: Vec<String>,
        /// Address of the receiver.
        receiver: IpAddr,
    },
    /// A router whose kernel carries packets through queue disciplines.
    Qdiscs {
        /// Counters to read, and scheduled changes.
        watch: Qdiscs,
    },
}

/// Names of the directions of the path, as in the tables.
pub const LINKS: [&str; 2] = ["forward", "reverse"];

/// A flow, and the address for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outgoing {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Address of the host that receives the data; for programs, of the host that runs the flow's server.
    pub to: IpAddr,
}

/// An interface of a host whose packets are measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterPoint {
    /// File of the host's network namespace.
    pub namespace: PathBuf,
    /// Name of the interface.
    pub interface: String,
}

/// The server of a copy of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Number of the copy.
    pub copy: u64,
    /// Address of the server.
    pub address: SocketAddr,
    /// Whether its clients send the data.
    pub client_sends: bool,
}

/// An interface of the router, and the host at its other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name of the router's interface.
    pub interface: String,
    /// Address of the host.
    pub address: IpAddr,
    /// Ethernet address of the host.
    pub mac: [u8; 6],
    /// Name of the host in the scenario.
    pub host: String,
    /// RTT of the host's flows beyond that of the path.
    pub extra_rtt: Span,
}

/// Tasks of a router with queue disciplines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdiscs {
    /// Queue disciplines of the forward link.
    pub forward: Option<Qdisc>,
    /// Queue disciplines of the reverse link.
    pub reverse: Option<Qdisc>,
    /// Commands, as lists of words, to run at times since the start.
    pub at: Vec<(Span, Vec<String>)>,
}

/// Queue disciplines that implement a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Interface and handle (`"1:"`) of the discipline with the queue.
    pub queue: (String, String),
    /// Interface and handle of the netem in front of it, whose drops are random losses.
    pub loss: Option<(String, String)>,
    /// Interface and handle of the htb whose filter drops what exceeds the policer's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<(String, String)>,
    /// Rates of a link whose capacity is a profile, because the router does not have the plan's profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Step>,
}

/// An event that a host reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum HostEvent {
    /// Everything is prepared.
    Configured {
        /// Values of the applied kernel settings, as read back.
        sysctls: BTreeMap<String, String>,
        /// Congestion controls that the host's kernel has.
        cc: Vec<String>,
        /// Release of the host's kernel.
        kernel: String,
    },
    /// Time of the host's clock.
    Clock {
        /// Reading of the host's CLOCK_MONOTONIC.
        monotonic_ns: u64,
    },
    /// A flow is complete: all of its copies have finished.
    Over {
        /// Name of the flow.
        flow: String,
    },
    /// Result of a transfer.
    Flow(Box<FlowReport>),
    /// Sample of a connection.
    Sample(Box<SampleReport>),
    /// One value of the state of a connection's congestion control.
    State(StateReport),
    /// Sample of a link.
    Queue(Box<QueueReport>),
    /// Result of a client of a flow.
    ProgramRun(Box<ProgramRun>),
    /// The packets of one direction of a program's connection.
    Metered(Box<Metered>),
    /// Sample of a program's connection, in the direction of the data.
    MeterSample(Box<MeterSample>),
    /// State of the path during a session.
    Status(Box<StatusReport>),
    /// Result of a connection of a session.
    Connection(Box<ConnectionReport>),
    /// Label of the next flow in the rows of a session; flows are numbered in this order.
    Label(Box<FlowLabel>),
    /// End of the results: only `clock` events follow.
    Stopped {
        /// The host's measurements of itself, by names that include their units.
        measured: BTreeMap<String, f64>,
        /// Reasons why the experiment is untrustworthy.
        untrustworthy: Vec<String>,
    },
    /// The host cannot continue.
    Failed(Error),
}

/// Identifies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Connection {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Number of the parallel copy, from 0.
    pub copy: u64,
    /// Number of the connection within the copy, from 0.
    pub connection: u64,
}

/// State of the path during the previous second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Time of the report.
    pub t_us: u64,
    /// Rate of IP packets that left the path, towards the receiver and towards the sender.
    pub rate_bps: [u64; 2],
    /// Mean one-way delay above the smallest one so far, in the direction that carried more; `None` if no delay was
    /// measured.
    pub queue_us: Option<f64>,
    /// Share of packets that were lost in that direction; `None` if no packet entered it.
    pub loss_percent: Option<f64>,
}

/// A connection of a session, in the direction that carries more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Address and port of the sender of the data.
    pub from: SocketAddr,
    /// Address and port of the receiver.
    pub to: SocketAddr,
    /// Congestion control; `None` if unknown or not applicable.
    pub cc: Option<String>,
    /// Time of the first packet.
    pub start_us: u64,
    /// Time at which the last data left the path; `start_us` if no data left it.
    pub end_us: u64,
    /// Payload that left the path; for TCP, each byte once.
    pub bytes: u64,
    /// Packets with payload that entered the path.
    pub packets: u64,
    /// Retransmissions among these; `None` if the protocol is not TCP.
    pub retransmits: Option<u64>,
    /// Packets that were lost on the path.
    pub lost_packets: u64,
    /// Median of the smoothed round-trip times; `None` if no socket was sampled.
    pub rtt_us: Option<f64>,
    /// Median of the one-way delays of the packets; `None` if no delay was measured.
    pub delay_us: Option<f64>,
}

/// A flow of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowLabel {
    /// Name of the flow: the protocol and the smaller of the two ports, such as `tcp-5201`.
    pub flow: String,
    /// Congestion control; `-` if unknown or not applicable.
    pub cc: String,
    /// Whether the data flows to the sender.
    pub is_up: bool,
}

/// A row of the table `flows`. Fields have the meaning of the columns of the same name; `flow` is an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "crates/trace says what the columns mean")]
pub struct FlowReport {
    #[serde(flatten)]
    pub of: Connection,
    pub transfer: u64,
    pub size_bytes: Option<u64>,
    pub start_us: u64,
    pub end_us: u64,
    pub completed: bool,
    pub acked_bytes: u64,
    pub segments: u64,
    pub retransmits: Option<u64>,
    pub timeouts: Option<u64>,
    pub marked_segments: Option<u64>,
    pub rtt_min_us: Option<f64>,
    pub rtt_mean_us: Option<f64>,
    pub rtt_p50_us: Option<f64>,
    pub rtt_p95_us: Option<f64>,
    pub rtt_p99_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitrate_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_us: Option<u64>,
}

/// A row of the table `samples`. Fields have the meaning of the columns of the same name; `flow` is an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "crates/trace says what the columns mean")]
pub struct SampleReport {
    #[serde(flatten)]
    pub of: Connection,
    pub t_us: u64,
    pub cwnd_packets: u64,
    pub ssthresh_packets: Option<u64>,
    pub inflight_packets: u64,
    pub pacing_rate_bps: Option<u64>,
    pub delivery_rate_bps: Option<u64>,
    pub srtt_us: Option<u64>,
    pub min_rtt_us: Option<u64>,
    pub acked_bytes: u64,
    pub segments: u64,
    pub retransmits: u64,
    pub marked_segments: u64,
    /// State of loss recovery as the kernel numbers it: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub ca_state: u8,
}

/// A run of a client of a flow that programs generate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The run's connection in the tables.
    #[serde(flatten)]
    pub of: Connection,
    /// Number of bytes to transfer.
    pub size_bytes: Option<u64>,
    /// Start time.
    pub start_us: u64,
    /// Time of its exit or of SIGTERM.
    pub end_us: u64,
    /// Whether the client exited with status 0 before SIGTERM, and left no process running.
    pub completed: bool,
    /// Whether the client received SIGTERM, at the flow's stop or the experiment's end.
    pub is_interrupted: bool,
    /// Reading of the host's CLOCK_REALTIME at time zero, for converting the timestamps in log files of programs.
    pub zero_realtime_us: u64,
}

/// Counters of one direction of a program's connection: one 5-tuple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metered {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Number of the parallel copy.
    pub copy: u64,
    /// Address of the client.
    pub client: SocketAddr,
    /// Whether this is the direction of the flow's data.
    pub is_data: bool,
    /// Time of the first packet.
    pub first_us: u64,
    /// Time at which the last packet with payload left the path; `None` if no such packet left it.
    pub last_us: Option<u64>,
    /// Payload that left the path; for TCP, each byte once.
    pub delivered_bytes: u64,
    /// Packets with payload that entered the path.
    pub segments: u64,
    /// Retransmissions among these; `None` for UDP.
    pub retransmits: Option<u64>,
    /// Packets that were lost on the path.
    pub lost_packets: u64,
    /// Largest payload of a packet.
    pub max_payload_bytes: u64,
    /// Number of packets whose one-way delay is known.
    pub delayed_packets: u64,
    /// Smallest one-way delay.
    pub delay_min_us: Option<f64>,
    /// Mean of the one-way delays.
    pub delay_mean_us: Option<f64>,
    /// 95th percentile of the one-way delays.
    pub delay_p95_us: Option<f64>,
}

/// A sample of a program's connection, from its packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `Metered`, up to the moment")]
pub struct MeterSample {
    pub flow: usize,
    pub copy: u64,
    pub client: SocketAddr,
    pub t_us: u64,
    pub delivered_bytes: u64,
    pub segments: u64,
    pub retransmits: Option<u64>,
    /// Payload bits per second that were delivered since the previous sample.
    pub delivery_rate_bps: u64,
    /// Mean one-way delay of the packets that left the path since the previous sample.
    pub delay_us: Option<f64>,
    /// Number of these packets.
    pub delayed_packets: u64,
}

/// A row of the table `state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "crates/trace says what the columns mean")]
pub struct StateReport {
    #[serde(flatten)]
    pub of: Connection,
    pub t_us: u64,
    /// One of [`crate::diag::STATE_KEYS`].
    pub key: String,
    pub value: f64,
}

/// A row of the table `queue`. Fields have the meaning of the columns of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "crates/trace says what the columns mean")]
pub struct QueueReport {
    /// Whether this is the link from sender to receiver.
    pub is_forward: bool,
    pub t_us: u64,
    #[serde(flatten)]
    pub counters: QueueCounters,
}

impl QueueReport {
    /// Returns the row of the table `queue`.
    pub fn row(&self, experiment: u64, repetition: u64) -> QueueRow {
        let link = LINKS[usize::from(!self.is_forward)];
        QueueRow::new(experiment, repetition, link, self.t_us, self.counters)
    }
}
