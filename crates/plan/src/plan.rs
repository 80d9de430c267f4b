//! The plan: resolved experiments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::{Bytes, IPV6_EXTRA, MSS, Packets, Probability, Rate, Span, Time};

mod app;
mod queue;
pub use app::{App, segment_bytes};
pub use queue::Queue;

/// Version of the format of plans and run directories.
pub const FORMAT: u32 = 1;

/// Input of `thalweg-engine run`: every experiment, fully specified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always 1.
    pub format: u32,
    /// Name of the engine that is to run it.
    pub engine: String,
    /// Name of the scenario.
    pub name: String,
    /// Description of the scenario.
    pub about: String,
    /// Source of the scenario.
    pub source: String,
    /// The scenario file as it was written.
    pub scenario_toml: String,
    /// Capacity traces by the names that links use: milliseconds at which a 1500-byte packet may leave, in order.
    pub traces: BTreeMap<String, Vec<u64>>,
    /// Conditions that change over time, by the names that links use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-left-out" = true, "default" = {}))]
    pub profiles: BTreeMap<String, Profile>,
    /// Experiments, each one repetition of a point of the sweep.
    pub experiments: Vec<Experiment>,
}

/// Traces and profiles, which links refer to by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traces {
    /// As [`Plan::traces`].
    pub opportunities: BTreeMap<String, Vec<u64>>,
    /// As [`Plan::profiles`].
    pub profiles: BTreeMap<String, Profile>,
}

impl Plan {
    /// Returns the traces and profiles of the plan.
    pub fn named_traces(&self) -> Traces {
        Traces { opportunities: self.traces.clone(), profiles: self.profiles.clone() }
    }
}

/// One point of a sweep, one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Number of the sweep point, from 0.
    pub experiment: u32,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Values that the sweep set: key of the scenario, value as written.
    pub sweep: BTreeMap<String, SweepValue>,
    /// Seed of the experiment's random numbers.
    pub seed: u64,
    /// Time limit; null: the experiment ends when every flow has finished.
    pub duration_ns: Option<Span>,
    /// Time between two samples; 0: no samples.
    pub sample_interval_ns: Span,
    /// Random delay, between 0 and this value, of each copy's start and of its connections after a gap.
    pub start_jitter_ns: Span,
    /// Round-trip time of the empty path.
    pub rtt_ns: Span,
    /// Whether packets are IPv6: their headers are 20 bytes larger than those of IPv4.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub ipv6: bool,
    /// From sender to receiver: the bottleneck.
    pub forward: Link,
    /// From receiver to sender.
    pub reverse: Link,
    /// Hosts by name; `sender` and `receiver` always exist.
    pub hosts: BTreeMap<String, Host>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// UDP traffic.
    pub background: Vec<Background>,
    /// Settings of the engines that use a real kernel; the simulator uses only `record`.
    pub engine: Choices,
}

/// Settings of engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    /// Emulator of the bottleneck.
    pub link: Emulator,
    /// Generator of the traffic.
    pub traffic: Generator,
    /// Whether segmentation and receive offloads stay on along the path.
    pub offloads: bool,
    /// Whether every packet offered to the path is recorded: as rows, and, of real packets, as a capture.
    pub record: bool,
}

/// Emulator of the bottleneck on a real kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emulator {
    /// The relay where it can run, else the kernel's queue disciplines.
    #[default]
    Auto,
    /// The built-in emulator in user space.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}

/// Generator of the traffic on a real kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// The built-in generator.
    #[default]
    Builtin,
}

/// A value that the sweep sets; all values of a key have the same type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepValue {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// One direction of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate at which packets leave the queue.
    pub capacity: Capacity,
    /// Capacity of the queue, excluding the packet being sent.
    pub buffer: Buffer,
    /// Queue discipline.
    pub queue: Queue,
    /// Random loss.
    pub loss: Loss,
    /// Probability that a packet is duplicated.
    pub duplicate: Probability,
    /// Propagation delay of this direction.
    pub delay_ns: Span,
    /// Additional random delay between 0 and this value; packets stay in order unless they may be reordered.
    pub jitter_ns: Span,
    /// Whether packets whose delay varies may overtake one another.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub allow_reordering: bool,
    /// Probability that a packet is held back.
    pub reorder: Probability,
    /// Time for which a packet is held back.
    pub reorder_delay_ns: Span,
    /// Token bucket that drops packets beyond its rate; absent or null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub policer: Option<Policer>,
    /// Packets leave together; absent or null: each packet leaves alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub aggregation: Option<Aggregation>,
    /// Up to this number of a connection's plain acknowledgements become one; absent or null: all are forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub ack_thinning: Option<u32>,
    /// Whether segments that reach the link back to back are merged: queued, dropped and sent as one packet.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub offloads: bool,
    /// Name in [`Plan::profiles`] of the profile of delay and loss; absent or null: they are constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub profile: Option<String>,
}

/// A token bucket. A packet passes if the bucket contains its size, and is dropped otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which the bucket fills; it counts IP packets.
    pub rate_bps: Rate,
    /// Size of the bucket, which is full at the start.
    pub burst_bytes: Bytes,
    /// Whether it is behind the capacity instead of in front of the queue.
    pub after: bool,
}

/// Transmission opportunities. The first packet after an opportunity waits for `interval_ns`; waiting packets, up to
/// `max_bytes`, then leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    /// Interval in which packets are collected.
    pub interval_ns: Span,
    /// Bytes that leave together, rounded up to whole packets; null: no limit.
    pub max_bytes: Option<Bytes>,
}

/// Conditions of a link that change over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Period after which it repeats; null: the last point lasts.
    pub period_ns: Option<Span>,
    /// The first is at 0; later ones follow in time.
    pub points: Vec<ProfilePoint>,
}

/// Conditions from a given time; null: unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfilePoint {
    /// Time from which the step applies.
    pub at_ns: Time,
    /// The rate, for links whose capacity is the profile; 0 stops the link.
    pub rate_bps: Option<Rate>,
    /// The propagation delay.
    pub delay_ns: Option<Span>,
    /// The probability that a packet is lost at random.
    pub loss: Option<Probability>,
}

/// Rate at which packets leave the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Capacity {
    /// Unlimited: nothing ever queues.
    Unlimited,
    /// A rate that may change.
    Steps {
        /// The first is at 0; later ones follow in time.
        steps: Vec<Step>,
    },
    /// The opportunities of a trace, repeated forever.
    Trace {
        /// Name in [`Plan::traces`].
        trace: String,
    },
    /// The rates of the link's profile.
    Profile {},
}

/// A rate from a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time from which the step applies.
    pub at_ns: Time,
    /// The rate from then on; 0 stops the link.
    pub rate_bps: Rate,
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Buffer {
    /// A limit in bytes.
    Bytes {
        /// Capacity in bytes of IP packets.
        bytes: Bytes,
    },
    /// A limit in packets.
    Packets {
        /// Capacity in packets of any size.
        packets: Packets,
    },
}

/// Random loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// Each packet independently.
    Bernoulli {
        /// Probability of loss.
        ratio: Probability,
    },
    /// Two states with different loss ratios; the state may change before each packet.
    GilbertElliott {
        /// Probability of a transition from good to bad.
        p: Probability,
        /// Probability of a transition from bad to good.
        r: Probability,
        /// Probability of loss in the bad state.
        loss_bad: Probability,
        /// Probability of loss in the good state.
        loss_good: Probability,
    },
}

/// An end host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Limit of a connection's send buffer.
    pub sndbuf_max_bytes: Bytes,
    /// Limit of a connection's receive buffer.
    pub rcvbuf_max_bytes: Bytes,
    /// Every packet leaves after a random delay between 0 and this value, in order.
    pub delay_jitter_ns: Span,
    /// Restriction of its CPU; absent or null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub cpu: Option<Cpu>,
    /// Whether it has a second CPU, which handles interrupts while the application runs on the first. With `cpu`, each
    /// has its own slices.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub second_cpu: bool,
    /// Number of compute-bound processes on the same CPU.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("x-left-out" = true, "default" = 0))]
    pub co_tenants: u32,
    /// Generation of its kernel; absent or null: the newest that the simulator models, or the one that a real engine
    /// has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub kernel: Option<Kernel>,
    /// Whether its network card merges segments that arrive back to back.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub offloads: bool,
    /// Time for which its network card collects arriving packets, from the first one on, before the host handles them.
    #[serde(default, skip_serializing_if = "is_no_time")]
    #[schemars(extend("x-left-out" = true, "default" = 0))]
    pub interrupt_coalescing_ns: Span,
    /// Queue discipline of its own interface; absent or null: its kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub qdisc: Option<String>,
}

impl Host {
    /// Number of its CPUs.
    pub fn cpus(&self) -> u32 {
        1 + u32::from(self.second_cpu)
    }
}

/// Generations of Linux, named after long-term kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kernel {
    /// Linux 6.1: the window is half of the receive buffer.
    #[serde(rename = "6.1")]
    Linux6_1,
    /// Linux 6.12: the window follows from the size of packets in memory.
    #[serde(rename = "6.12")]
    Linux6_12,
    /// Linux 6.18: as 6.12, and the receive buffer grows by other rules.
    #[serde(rename = "6.18")]
    Linux6_18,
}

impl Kernel {
    /// Every generation, the oldest first.
    pub const ALL: [Kernel; 3] = [Kernel::Linux6_1, Kernel::Linux6_12, Kernel::Linux6_18];

    /// Name, such as `6.18`.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Linux6_1 => "6.1",
            Kernel::Linux6_12 => "6.12",
            Kernel::Linux6_18 => "6.18",
        }
    }

    /// Returns the generation of a kernel by its release, such as `6.18.44-cloud`; `None` if no generation has its
    /// major and minor number.
    pub fn of_release(release: &str) -> Option<Kernel> {
        let numbers = numbers(release)?;
        Kernel::ALL.into_iter().find(|kernel| self::numbers(kernel.name()) == Some(numbers))
    }

    /// Returns the newest generation that is not newer than a kernel, by its release; the oldest one for older kernels.
    /// `None` if the release is malformed.
    ///
    /// ```
    /// use thalweg_plan::plan::Kernel;
    ///
    /// let names = ["5.15.0-91-generic", "6.8.0-45-generic", "6.14.0", "6.18.44", "7.0.1"].map(Kernel::nearest);
    /// assert_eq!(names.map(|kernel| kernel.unwrap().name()), ["6.1", "6.1", "6.12", "6.18", "6.18"]);
    /// assert_eq!(Kernel::nearest("unknown"), None);
    /// ```
    pub fn nearest(release: &str) -> Option<Kernel> {
        let numbers = Some(numbers(release)?);
        let older = Kernel::ALL.into_iter().rev().find(|kernel| self::numbers(kernel.name()) <= numbers);
        Some(older.unwrap_or(Kernel::ALL[0]))
    }
}

/// The major and the minor number of a release.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether to omit a field with a default of 0, so that plans without the field keep the ids of their experiments.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_no_time(time: &Span) -> bool {
    *time == Span::ZERO
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A share of a CPU, in slices without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Length of a slice, in which the host is on CPU.
    pub slice_ns: Span,
    /// Time from the start of a slice to the start of the next; at least the length of a slice.
    pub period_ns: Span,
    /// CPU time to send a packet, where the engine models that.
    pub per_packet_ns: Span,
    /// CPU time to handle a received packet, where the engine models that.
    pub per_ack_ns: Span,
    /// Maximum deviation of slices from `slice_ns`, in millionths of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("x-left-out" = true, "default" = 0))]
    pub slice_jitter_ppm: u32,
    /// CPU time that may be used before the slices begin; absent or null: none, and none is earned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub credit: Option<Credit>,
}

/// CPU credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// CPU time at the start.
    pub initial_ns: Span,
    /// Maximum CPU credit.
    pub max_ns: Span,
    /// Share of the time that is earned, in millionths.
    pub baseline_ppm: u32,
    /// Share of its time on CPU that the host's other load uses, in millionths.
    pub load_ppm: u32,
}

impl Cpu {
    /// Returns the share of the CPU's time.
    pub fn share(&self) -> f64 {
        self.slice_ns.0 as f64 / self.period_ns.0 as f64
    }

    /// Returns whether the host is always on CPU.
    pub fn is_whole(&self) -> bool {
        self.slice_ns >= self.period_ns
    }
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Congestion control.
    pub cc: String,
    /// File to load the algorithm from; absent or null: the engine provides the algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub cc_file: Option<CcFile>,
    /// Parameters of the algorithm that the scenario sets.
    pub cc_params: BTreeMap<String, f64>,
    /// Whether segments leave at the pacing rate even if the algorithm does not pace.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub paced: bool,
    /// Whether the connection negotiates ECN even if the algorithm does not need it.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub ecn: bool,
    /// Earliest time at which the first connection opens.
    pub start_ns: Time,
    /// Time at which the flow stops sending; null: at the end.
    pub stop_ns: Option<Time>,
    /// Load of a connection.
    pub load: Load,
    /// Connections that follow the first one.
    pub repeat: Repeat,
    /// Parallel copies, each with its own series of connections.
    pub count: u32,
    /// Added to the round-trip time, half in each direction.
    pub extra_rtt_ns: Span,
    /// Name of the host at the sender's end of the path: it sends the flow's data, or receives it if the flow goes up.
    pub host: String,
    /// Whether the data goes from the host `receiver` through the reverse link, and acknowledgements through the
    /// forward one.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub up: bool,
    /// Programs that generate the flow; absent or null: the built-in traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-left-out" = true))]
    pub program: Option<Program>,
}

/// Two programs that generate a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Words of the server's command, including placeholders.
    pub server: Vec<String>,
    /// Words of the client's command, including placeholders.
    pub client: Vec<String>,
    /// Condition for a server to be ready.
    pub ready: Ready,
    /// Port of the server of copy 0; copy n has this port plus n.
    pub port: u16,
    /// Whether clients send the data; otherwise servers do.
    pub client_sends: bool,
    /// Whether qlog files become samples.
    pub qlog: bool,
    /// Working directory.
    pub folder: String,
}

/// Condition for a server to be ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ready {
    /// A TCP socket listens on the server's port, or a UDP socket is bound to it.
    Listening,
    /// The server has printed a text.
    Output {
        /// The text.
        text: String,
    },
    /// A fixed time has passed.
    After {
        /// The time.
        after_ns: Span,
    },
}

impl Experiment {
    /// Payload bytes of a full-sized TCP segment.
    pub fn mss(&self) -> Bytes {
        if self.ipv6 { MSS.saturating_sub(IPV6_EXTRA) } else { MSS }
    }

    /// Whether the data of any flow goes from the host `receiver` through the reverse link.
    pub fn has_up_flows(&self) -> bool {
        self.flows.iter().any(|flow| flow.up)
    }

    /// Whether any flow is an application.
    pub fn has_apps(&self) -> bool {
        self.flows.iter().any(|flow| matches!(flow.load, Load::App { .. }))
    }

    /// Whether programs make any flow.
    pub fn has_programs(&self) -> bool {
        self.flows.iter().any(|flow| flow.program.is_some())
    }

    /// Returns whether the data of any flow, or background traffic, goes through the reverse link.
    pub fn has_up_traffic(&self) -> bool {
        self.has_up_flows() || self.background.iter().any(|source| source.up)
    }
}

impl Flow {
    /// Returns a flow of one connection from the host `sender`, which starts at once, with default settings.
    pub fn new(name: &str, cc: &str, load: Load) -> Flow {
        Flow {
            name: name.to_owned(),
            cc: cc.to_owned(),
            cc_file: None,
            cc_params: BTreeMap::new(),
            paced: false,
            ecn: false,
            start_ns: Time::ZERO,
            stop_ns: None,
            load,
            repeat: Repeat::Once,
            count: 1,
            extra_rtt_ns: Span::ZERO,
            host: "sender".to_owned(),
            up: false,
            program: None,
        }
    }

    /// Returns the direction as scenarios and tables write it: `"down"` or `"up"`.
    pub fn direction(&self) -> &'static str {
        if self.up { "up" } else { "down" }
    }
}

/// A file with a user-supplied congestion control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CcFile {
    /// Kind of the file.
    pub kind: CcFileKind,
    /// Path of the file.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// Files that congestion controls are loaded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CcFileKind {
    /// An eBPF object with a struct_ops algorithm.
    Bpf,
    /// A kernel module.
    Module,
}

/// Load of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// One unlimited transfer.
    Unlimited,
    /// One transfer, whose size is drawn from these with equal probability.
    Sizes {
        /// At least one.
        sizes_bytes: Vec<Bytes>,
    },
    /// Consecutive transfers on one connection.
    Requests {
        /// Size of each.
        size_bytes: Bytes,
        /// Time from the end of a transfer to the start of the next.
        think_ns: Span,
        /// Number of transfers; null: until the flow stops.
        count: Option<u32>,
    },
    /// Data of an application, on connections that it opens.
    App {
        /// The application.
        app: App,
    },
}

impl Load {
    /// Whether it continues until its flow stops.
    pub fn is_endless(&self) -> bool {
        match self {
            Load::Unlimited | Load::Requests { count: None, .. } => true,
            Load::Sizes { .. } | Load::Requests { .. } => false,
            Load::App { app } => app.is_endless(),
        }
    }

    /// Whether it has nothing to send, or an application's parameters are invalid.
    pub fn is_invalid(&self) -> bool {
        match self {
            Load::Unlimited => false,
            Load::Sizes { sizes_bytes } => sizes_bytes.is_empty() || sizes_bytes.contains(&Bytes::ZERO),
            Load::Requests { size_bytes, count, .. } => *size_bytes == Bytes::ZERO || *count == Some(0),
            Load::App { app } => app.is_invalid(),
        }
    }
}

/// Connections that follow the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Repeat {
    /// No further connections.
    Once,
    /// Each connection opens a fixed time after the previous one has finished.
    Gap {
        /// Time between the end of a connection and the start of the next.
        gap_ns: Span,
        /// No more connections open once the flow with this name has finished.
        until: Option<String>,
        /// Maximum number of connections of each copy; null: no limit.
        count: Option<u32>,
    },
    /// Random arrivals, whether or not earlier connections have finished; a gap also precedes the first one.
    Poisson {
        /// Mean of the exponentially distributed gap between arrivals.
        mean_gap_ns: Span,
        /// No more connections open once the flow with this name has finished.
        until: Option<String>,
        /// Maximum number of connections of each copy; null: no limit.
        count: Option<u32>,
    },
}

/// UDP packets of 1500 bytes at a constant rate, each at a random time within its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Rate, headers included.
    pub rate_bps: Rate,
    /// Start time.
    pub start_ns: Time,
    /// Stop time; null: at the end.
    pub stop_ns: Option<Time>,
    /// Whether it goes from the host `receiver` through the reverse link.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("x-left-out" = true, "default" = false))]
    pub up: bool,
}
