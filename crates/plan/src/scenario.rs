//! The scenario file.
//!
//! These types are never read in Rust: they exist to generate the JSON Schema. A `String` whose schema has one of the
//! project's formats (`rate`, `size`, `time`, ...) is a quantity.

use crate::plan::Kernel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod app;
mod queue;
pub use app::{App, AppName, AppTable};
pub use queue::{Queue, QueueName, QueueTable};

/// A scenario file: experiments for all engines.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name of the scenario: letters, digits, dots, dashes and underscores. It names the run directory.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    pub name: String,
    /// Description of the scenario, in a sentence or two.
    #[serde(default)]
    pub about: String,
    /// Source of the scenario: paper, section, figure.
    #[serde(default)]
    pub source: String,
    /// Time limit of each experiment. Optional if every flow ends without it, for example through a size, a count or a
    /// stop.
    #[schemars(extend("format" = "time"))]
    pub duration: Option<String>,
    /// Number of repetitions of each point of the sweep, each with a different seed.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub repetitions: u32,
    /// Each experiment derives its own seed from this one, its sweep point and its repetition.
    #[serde(default = "one_u64")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991u64))]
    pub seed: u64,
    /// Random delay, between zero and this value, of each copy's start and of its connections after a gap. `"1rtt"` is
    /// path.rtt. Without it, simulated repetitions may be identical.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time-or-rtt"))]
    pub start_jitter: String,
    /// Interval at which cwnd, rates, RTT and the queue are recorded. `"0s"` records no time series.
    #[serde(default = "ten_ms")]
    #[schemars(extend("format" = "time"))]
    pub sample_interval: String,
    /// The path between sender and receiver.
    pub path: Path,
    /// Hosts by name. `sender` and `receiver` always exist; flows may name others in place of `sender`.
    #[serde(default)]
    pub host: BTreeMap<String, Host>,
    /// Flows of data.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// Unresponsive UDP traffic on the same path.
    #[serde(default)]
    pub background: Vec<Background>,
    /// Settings of the engines that use a real kernel. The simulator uses only `record`.
    pub engine: Option<Engine>,
    /// Keys of the scenario with the values to run: every combination is a point. Flows are addressed by name, as in
    /// `"flow.medium.cc" = ["bbr", "cubic"]`. `rows = ["paths.csv"]` names CSV files whose header names keys and whose
    /// rows each set these keys together: each row is combined with the values of the other keys.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<SweepValue>>,
}

/// A value that a sweep sets for a key.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepValue {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text, such as a quantity or an algorithm.
    Text(String),
}

/// The bottleneck and the reverse path. The bottleneck's capacity is set by a preset or exactly one of `rate`, `steps`
/// and `trace`; `rate` may be combined with steps or a trace without rates.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Constant rate of the bottleneck; it counts IP packets, headers included.
    #[schemars(extend("format" = "rate"))]
    pub rate: Option<String>,
    /// Conditions that change in steps. The first step is at `"0s"`.
    pub steps: Option<Vec<Step>>,
    /// A file of conditions that change, relative to the scenario's folder. Either mahimahi's format: a line per
    /// 1500-byte packet that may leave, in milliseconds since the start; or a CSV with the column `t_s` and any of
    /// `rate_bps,delay_s,loss`. The file repeats.
    pub trace: Option<String>,
    /// Parameters of a kind of network, with their sources; keys of [path] take precedence.
    pub preset: Option<PathPreset>,
    /// Round-trip time of an empty path, half in each direction. Required unless a preset sets it.
    #[schemars(extend("format" = "time"))]
    pub rtt: Option<String>,
    /// Capacity of the bottleneck's queue, excluding the packet being sent: `"0.5bdp"` (of the first rate, or a trace's
    /// mean rate, and path.rtt), `"100kB"` or `"240packets"`. If it is set, it is also the limit of queue disciplines
    /// without a `limit`; those that count packets count 1500 bytes as one.
    #[serde(default = "one_bdp")]
    #[schemars(extend("format" = "buffer"))]
    pub buffer: String,
    /// Queue discipline: a name, or a table with `name` and tc's parameters.
    #[serde(default)]
    pub queue: Queue,
    /// Token bucket: packets that exceed it are dropped.
    pub policer: Option<Policer>,
    /// Packets leave together, as in Wi-Fi, LTE and DOCSIS. For the other direction, see [path.reverse].
    pub aggregation: Option<Aggregation>,
    /// Random loss before the queue: a ratio, or a Gilbert-Elliott model.
    #[serde(default)]
    pub loss: Loss,
    /// Each packet is delayed by an additional random time between zero and this value, in order unless
    /// `allow_reordering` is set.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub jitter: String,
    /// Whether packets whose delay varies may overtake one another: `jitter` then reorders them, as netem's does.
    #[serde(default)]
    pub allow_reordering: bool,
    /// Packets that are held back so that later ones overtake them: a ratio, or a table with the delay.
    #[serde(default)]
    pub reorder: Reorder,
    /// Ratio of packets that are duplicated.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Whether the router merges segments of a connection that reach it back to back (GRO): its queue counts, drops and
    /// sends merged segments, up to 64 KiB, as one packet. So does a Linux router whose network card splits segments
    /// after the queue.
    #[serde(default)]
    pub offloads: bool,
    /// Version of the Internet Protocol: 4 or 6.
    #[serde(default = "ip_version_4")]
    #[schemars(range(min = 4, max = 6))]
    pub ip: u8,
    /// The reverse path. Default: unlimited rate, no loss.
    pub reverse: Option<Reverse>,
}

// It repeats many keys of `Path` with separate texts. If both flattened a common struct, serde would accept unknown
// keys, and the schema would have one text for both.
/// The reverse path: acknowledgements of flows that go down, data of those that go up.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reverse {
    /// Constant rate. Without `rate`, `steps` and `trace` the reverse path is unlimited; an unlimited flow that goes up
    /// needs one of the three, or a limited socket buffer of its hosts.
    #[schemars(extend("format" = "rate"))]
    pub rate: Option<String>,
    /// Conditions that change in steps. The first step is at `"0s"`; `rtt` is set in path.steps.
    pub steps: Option<Vec<Step>>,
    /// A file of conditions that change, as path.trace.
    pub trace: Option<String>,
    /// Capacity of its queue. A BDP is that of this direction's rate and path.rtt.
    #[serde(default = "one_bdp")]
    #[schemars(extend("format" = "buffer"))]
    pub buffer: String,
    /// Queue discipline.
    #[serde(default)]
    pub queue: Queue,
    /// Token bucket.
    pub policer: Option<Policer>,
    /// Packets leave together.
    pub aggregation: Option<Aggregation>,
    /// Up to this number of a connection's plain acknowledgements become one, as in modems and Wi-Fi access points.
    #[schemars(range(min = 1, max = 1000))]
    pub ack_thinning: Option<u32>,
    /// Random loss before its queue.
    #[serde(default)]
    pub loss: Loss,
    /// Additional random delay between zero and this value, in order unless `allow_reordering` is set.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub jitter: String,
    /// Whether packets whose delay varies may overtake one another on the reverse path.
    #[serde(default)]
    pub allow_reordering: bool,
    /// Packets that are held back so that later ones overtake them.
    #[serde(default)]
    pub reorder: Reorder,
    /// Ratio of packets that are duplicated.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Whether the router merges segments that reach it back to back, as path.offloads.
    #[serde(default)]
    pub offloads: bool,
}

/// Conditions from a given time; those that are not set stay unchanged.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time from which the step applies.
    #[schemars(extend("format" = "time"))]
    pub at: String,
    /// The rate from then on. If any step has a rate, the first step must have one.
    #[schemars(extend("format" = "rate"))]
    pub rate: Option<String>,
    /// The path's round-trip time from then on, half in each direction.
    #[schemars(extend("format" = "time"))]
    pub rtt: Option<String>,
    /// The ratio of packets lost at random from then on.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
}

/// A token bucket that drops non-conforming packets.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which the bucket fills; it counts IP packets.
    #[schemars(extend("format" = "rate"))]
    pub rate: String,
    /// Size of the bucket.
    #[schemars(extend("format" = "size"))]
    pub burst: String,
    /// Whether the policer is behind the bottleneck instead of in front of its queue.
    #[serde(default)]
    pub after: bool,
}

/// Transmission opportunities: packets wait and leave together.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    /// Interval in which packets are collected before they leave.
    #[schemars(extend("format" = "time"))]
    pub interval: String,
    /// Bytes that leave together, rounded up to whole packets; the rest waits for the next interval. Default: no limit.
    #[schemars(extend("format" = "size"))]
    pub max_bytes: Option<String>,
}

/// Kinds of networks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathPreset {
    /// Low-orbit satellites.
    Starlink,
    /// A geostationary satellite.
    Geo,
    /// 4G mobile access.
    Lte,
    /// 5G mobile access.
    #[serde(rename = "5g")]
    FiveG,
    /// A wireless LAN.
    Wifi,
    /// VDSL2 over copper.
    Dsl,
    /// DOCSIS 3.1 over coaxial cable.
    Cable,
    /// A passive optical network.
    Fibre,
    /// A link between servers of one data centre.
    Datacenter,
}

/// Random loss.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Loss {
    /// Each packet is lost with this probability, independently.
    Ratio(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// Loss in bursts.
    Model(LossModel),
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::Ratio(0.0)
    }
}

/// The Gilbert-Elliott model: a good and a bad state, each with its own loss. The state may change before each packet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossModel {
    /// Name of the model.
    pub model: LossModelName,
    /// Probability of a transition from good to bad, per packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
    /// Probability of a transition from bad to good, per packet.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub r: f64,
    /// Loss ratio in the bad state.
    #[serde(default = "one_f64")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss_bad: f64,
    /// Loss ratio in the good state.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss_good: f64,
}

/// Models of loss.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossModelName {
    /// Gilbert (1960) and Elliott (1963).
    GilbertElliott,
}

/// Reordering.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reorder {
    /// Ratio of packets that are delayed by an eighth of path.rtt.
    Ratio(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// Ratio and delay.
    Table(ReorderTable),
}

impl Default for Reorder {
    fn default() -> Reorder {
        Reorder::Ratio(0.0)
    }
}

/// Ratio and delay of packets that are held back.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderTable {
    /// Ratio of packets held back.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ratio: f64,
    /// Delay of these packets.
    #[schemars(extend("format" = "time-or-rtt"))]
    pub delay: String,
}

/// An end host.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Share of a CPU that a sending host gets, above 0: on CPU for cpu_slice, without a break, out of every
    /// cpu_slice / cpu_share. Default: the host has a CPU whenever it needs one.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cpu_share: Option<f64>,
    /// Duration for which the host stays on CPU at a time, at most a second. Default with a cpu_share: `"10ms"`.
    #[schemars(extend("format" = "time"))]
    pub cpu_slice: Option<String>,
    /// Random variation of slices, as a share of cpu_slice: with 0.5 they last from half to one and a half times as
    /// long, and cpu_share stays the same. Default: 0, all slices have the same length.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cpu_slice_jitter: Option<f64>,
    /// Model of the times when the host is on CPU. `"slices"`: by cpu_share and cpu_slice. `"credit"`: whenever it
    /// needs a CPU while it has credit (cpu_credit), then in slices, as on burstable cloud instances and under Xen's
    /// credit scheduler. Default: `"slices"`.
    pub cpu_model: Option<CpuModel>,
    /// CPU time that a host with `cpu_model = "credit"` has at the start: `"60s"` is one CPU credit of EC2.
    #[schemars(extend("format" = "time"))]
    pub cpu_credit: Option<String>,
    /// Maximum credit. Default: the credit of 24 hours of cpu_baseline, or cpu_credit if that is more.
    #[schemars(extend("format" = "time"))]
    pub cpu_credit_max: Option<String>,
    /// Share of a CPU at which credit is earned. Default: cpu_share.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cpu_baseline: Option<f64>,
    /// Share of its time on CPU that the host's other load uses, which spends credit. Packets do not wait for it.
    /// Default: 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cpu_load: Option<f64>,
    /// Number of CPUs of a sending host, 1 or 2. Default: 1. With a cpu_share, each CPU has a separate schedule with
    /// that share and slice. With two, the sending application runs on the first CPU and the network card interrupts
    /// the second one, which handles acknowledgements. The simulator ignores the second CPU without a cpu_share.
    #[schemars(range(min = 1, max = 2))]
    pub cpus: Option<u32>,
    /// Number of compute-bound processes on the CPU of the sending host, under the machine's normal scheduler. Cannot
    /// be combined with cpu_share.
    #[schemars(range(max = 64))]
    pub co_tenants: Option<u32>,
    /// CPU time that a simulated host with a cpu_share needs to send a packet. Default: `"1us"`.
    #[schemars(extend("format" = "time"))]
    pub cpu_per_packet: Option<String>,
    /// CPU time that a simulated host with a cpu_share needs to handle a received packet: an acknowledgement, or data
    /// of a flow that goes up, including the acknowledgement that it sends. Default: `"1us"`.
    #[schemars(extend("format" = "time"))]
    pub cpu_per_ack: Option<String>,
    /// Queue discipline of a sending host's interface, by its name in the kernel and with default parameters: `"fq"`,
    /// for example, which paces flows and serves them in turn. Default: the kernel's default for the interface.
    pub qdisc: Option<String>,
    /// Generation of the host's kernel, which decides how far a buffer limits a connection. The simulator models all of
    /// them (default: the newest); a real engine rejects any other than its own.
    pub kernel: Option<Kernel>,
    /// Maximum send buffer of a connection (the third value of tcp_wmem). Default: too large to limit it. Linux checks
    /// the limit once per 64 kB, so that more than the limit can be in flight. On `receiver` it limits flows that go
    /// up.
    #[schemars(extend("format" = "size"))]
    pub sndbuf_max: Option<String>,
    /// Maximum receive buffer of a connection (the third value of tcp_rmem). Default: too large to limit it. The window
    /// is half of it on Linux 6.1, and about 0.6 of it since 6.6. On hosts other than `receiver` it limits flows that
    /// go up.
    #[schemars(extend("format" = "size"))]
    pub rcvbuf_max: Option<String>,
    /// Each packet leaves the host after a random delay between zero and this value, in order.
    #[schemars(extend("format" = "time"))]
    pub delay_jitter: Option<String>,
    /// Whether the network card merges segments of a connection that arrive back to back (GRO), so that one
    /// acknowledgement answers all of them. Hosts send in bursts as with segmentation offload (TSO) with and without
    /// this key.
    pub offloads: Option<bool>,
    /// Time from the first packet in which the network card collects packets before it interrupts the host, which then
    /// handles all of them (`rx-usecs` of ethtool). Default: the host handles each packet as it arrives.
    #[schemars(extend("format" = "time"))]
    pub interrupt_coalescing: Option<String>,
    /// Parameters of a kind of network card, with their sources; keys of the host take precedence.
    pub preset: Option<HostPreset>,
}

/// Kinds of network cards.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub enum HostPreset {
    /// A 10 Gbit/s card of a server of 2019, with the settings that its Linux driver starts with.
    #[serde(rename = "nic-2019")]
    Nic2019,
}

/// A flow: one or several connections, and parallel copies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow, unique in the scenario: letters, digits, dashes and underscores.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"))]
    pub name: String,
    /// Congestion control: a name, or a table that says where to load it from. For a flow with `program`, the name
    /// that replaces `{cc}` in commands and labels its rows; only such flows may omit it.
    pub cc: Option<Cc>,
    /// Parameters of the algorithm, where the engine can set them.
    #[serde(default)]
    pub cc_params: BTreeMap<String, f64>,
    /// Whether segments are paced even if the algorithm does not pace, as with Linux's queue discipline `fq`: at 1.2
    /// times cwnd per round trip, and in early slow start at twice cwnd.
    #[serde(default)]
    pub paced: bool,
    /// Whether the connection negotiates ECN (RFC 3168). Default: as in Linux, only algorithms that need ECN do.
    pub ecn: Option<bool>,
    /// Bytes per connection: a size, or `"unlimited"`.
    #[serde(default = "unlimited")]
    #[schemars(extend("format" = "size-or-unlimited"))]
    pub size: String,
    /// Earliest time at which the first connection opens.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub start: String,
    /// Time at which the flow stops writing data and opening connections; real kernels still send buffered data.
    /// Default: the end of the experiment.
    #[schemars(extend("format" = "time"))]
    pub stop: Option<String>,
    /// Open further connections, one after another or at random times.
    pub repeat: Option<Repeat>,
    /// Number of parallel copies of the flow.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Added to path.rtt for this flow, half in each direction.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub extra_rtt: String,
    /// The host at the sender's end of the path, which sends the data of down flows and receives that of up flows. The
    /// host at the other end is always `receiver`.
    #[serde(default = "sender")]
    pub host: String,
    /// Direction of the data. `"down"`: from the flow's host to `receiver`, through path. `"up"`: from `receiver` to
    /// the flow's host, through path.reverse, with acknowledgements through path. Without `program`, the side that
    /// sends data opens the connection.
    #[serde(default)]
    pub direction: Direction,
    /// Many consecutive transfers over one connection. Replaces `size`.
    pub requests: Option<Requests>,
    /// An application that decides on the data and its times, on its own connections: a name, or a table with `name`
    /// and its parameters. Replaces `size`, `requests` and `repeat`.
    pub app: Option<App>,
    /// Two programs that generate the flow instead of the engine's TCP traffic, over any protocol.
    pub program: Option<Program>,
}

/// A server and a client program. They run without a shell, in the scenario's folder, with a separate client for each
/// connection and a separate server for each copy of the flow. In both commands `{server}` is the address of the
/// serving host, `{port}` the copy's port, `{size}` the bytes to transfer, `{cc}` the flow's `cc`, and `{out}` a folder
/// for files.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Command of the server, which stays in the foreground until SIGTERM.
    #[schemars(length(min = 1))]
    pub server: String,
    /// Command of a client, which exits with 0 when its transfer is complete.
    #[schemars(length(min = 1))]
    pub client: String,
    /// Condition for the server to be ready: `"listening"` (on its TCP or UDP port), or a table.
    #[serde(default = "listening")]
    pub ready: ProgramReady,
    /// Port of the first copy's server; further copies take the next ones. Default: the first free one from 4433.
    #[schemars(range(min = 1, max = 32_767))]
    pub port: Option<u16>,
    /// Which of the two sends the data. The sender of the data runs where the flow's data comes from: with `"server"`,
    /// a flow that goes down has its server on the flow's host and its clients on `receiver`; with `"client"`, the
    /// reverse.
    #[serde(default = "server")]
    pub sends: ProgramSends,
    /// Whether qlog files that the sender of the data writes into `{out}` become samples.
    #[serde(default)]
    pub qlog: bool,
}

/// Which program sends the data.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramSends {
    /// The server: a download.
    Server,
    /// The client: an upload.
    Client,
}

/// Condition for a server to be ready.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProgramReady {
    /// When a socket listens on its port.
    Name(ProgramReadyName),
    /// Another condition.
    Table(ProgramReadyTable),
}

/// Conditions without parameters for a server to be ready.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramReadyName {
    /// A TCP socket listens on the port, or a UDP socket is bound to it.
    Listening,
}

/// Another condition for a server to be ready; exactly one of the two keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramReadyTable {
    /// Text that the server prints.
    pub output: Option<String>,
    /// A fixed time after its start.
    #[schemars(extend("format" = "time"))]
    pub after: Option<String>,
}

/// Direction of the data.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To `receiver`, through path.
    #[default]
    Down,
    /// From `receiver`, through path.reverse.
    Up,
}

/// A congestion control.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Cc {
    /// An algorithm of the engine.
    Name(String),
    /// A user-supplied algorithm.
    Table(CcTable),
}

/// A user-supplied congestion control.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CcTable {
    /// Name under which it registers. Default: the file's name without the prefix `tcp_` and without its extensions.
    pub name: Option<String>,
    /// An eBPF object file with a struct_ops algorithm.
    pub bpf: Option<String>,
    /// A kernel module.
    pub module: Option<String>,
}

/// Further connections of a flow: either `gap`, or `arrivals` with `rate` and optionally `sizes`. Both may have `until`
/// and `count`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The next connection opens this long after the previous one has finished.
    #[schemars(extend("format" = "time"))]
    pub gap: Option<String>,
    /// Name of a flow; connections open until it has finished.
    pub until: Option<String>,
    /// Maximum number of connections of each copy.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub count: Option<u32>,
    /// Random arrivals of connections, whether or not earlier ones have finished.
    pub arrivals: Option<Arrivals>,
    /// Arrivals per second (`"20/s"`), or the load that they offer (`"10Mbps"`, divided by the mean size).
    #[schemars(extend("format" = "arrival-rate"))]
    pub rate: Option<String>,
    /// Sizes of the connections, with equal probability. Replaces `size`.
    #[schemars(extend("items" = serde_json::json!({ "type": "string", "format": "size" })))]
    pub sizes: Option<Vec<String>>,
}

/// Arrival processes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent arrivals: gaps are exponentially distributed.
    Poisson,
}

/// Many transfers over one connection.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Size of each transfer.
    #[schemars(extend("format" = "size"))]
    pub size: String,
    /// Pause between the end of a transfer and the start of the next.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub think: String,
    /// Number of transfers. Default: until the flow stops.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub count: Option<u32>,
}

/// Unresponsive UDP traffic: packets of 1500 bytes at a constant rate, each at a random moment of its interval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Rate, headers included.
    #[schemars(extend("format" = "rate"))]
    pub rate: String,
    /// Start time.
    #[serde(default = "zero_time")]
    #[schemars(extend("format" = "time"))]
    pub start: String,
    /// Stop time. Default: the end of the experiment.
    #[schemars(extend("format" = "time"))]
    pub stop: Option<String>,
    /// `"down"`: from the host `sender` to `receiver`, through path. `"up"`: from `receiver` to `sender`, through
    /// path.reverse.
    #[serde(default)]
    pub direction: Direction,
}

/// Settings of engines.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Emulator of the bottleneck.
    pub link: Option<EngineLink>,
    /// Traffic generator.
    pub traffic: Option<EngineTraffic>,
    /// Whether segmentation and receive offloads stay on along the path. Off, the queue counts packets; on, it counts
    /// segments of up to 64 kB, as on a host whose network card splits them.
    pub offloads: Option<bool>,
    /// Whether every packet offered to the path is recorded with its outcome: as the table `packets`, and on `kernel`
    /// and `vm` also as a capture that Wireshark reads.
    pub record: Option<bool>,
}

/// Model of the times when a host is on CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CpuModel {
    /// On CPU in slices.
    Slices,
    /// On CPU whenever the host needs one, until its credit is used up; then in slices.
    Credit,
}

/// Emulators of the bottleneck on a real kernel.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineLink {
    /// The relay where it can run, else the kernel's queue disciplines.
    Auto,
    /// The relay of thalweg, in user space.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}

/// Traffic generators on a real kernel.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineTraffic {
    /// The generator of thalweg.
    Builtin,
    /// iperf3, which generates every flow without `program`: with a size, as with `program = {server = "iperf3 -s -p
    /// {port}", client = "iperf3 -c {server} -p {port} -C {cc} -n {size}", sends = "client"}`.
    Iperf3,
}

fn one() -> u32 {
    1
}

fn one_u64() -> u64 {
    1
}

fn one_f64() -> f64 {
    1.0
}

fn zero_time() -> String {
    "0s".to_owned()
}

fn ten_ms() -> String {
    "10ms".to_owned()
}

fn ip_version_4() -> u8 {
    4
}

fn one_bdp() -> String {
    "1bdp".to_owned()
}

fn listening() -> ProgramReady {
    ProgramReady::Name(ProgramReadyName::Listening)
}

fn server() -> ProgramSends {
    ProgramSends::Server
}

fn unlimited() -> String {
    "unlimited".to_owned()
}

fn sender() -> String {
    "sender".to_owned()
}
