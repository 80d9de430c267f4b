//! The recorded scenes, with one recorded flow each.

use crate::algorithm::Algorithm;
use std::collections::BTreeMap;
use thalweg_plan::plan::{
    Buffer, Capacity, Choices, Emulator, Experiment, FORMAT, Flow, Generator, Host, Link, Load, Loss, Plan, Queue, Step,
};
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

/// A recorded scene.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Name of the scene.
    pub name: &'static str,
    /// Purpose of the scene.
    pub about: &'static str,
    path: fn(Algorithm) -> Path,
    /// Capacity of the queue, as a percentage of the bandwidth-delay product; `None`: 100,000 packets.
    buffer_percent: Option<u64>,
    /// Percentage of random losses.
    loss_percent: fn(Algorithm) -> f64,
    /// Percentage of packets that are held back, so that others overtake them.
    reorder_percent: f64,
    /// Maximum of a random delay of acknowledgements. They stay in order, so they arrive in bunches.
    ack_jitter: Span,
    load: fn() -> Load,
    /// Whether the queue marks packets when DCTCP is recorded. The other algorithms do not request ECN.
    is_marking: bool,
    is_competing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    rate: Rate,
    rtt: Span,
    duration: Span,
}

/// A slow path. BBR's ProbeRTT starts after 10 s; the other algorithms need less time to regrow their windows.
const SLOW: fn(Algorithm) -> Path = |algorithm| match algorithm {
    Algorithm::Bbr => Path { rate: Rate(1_600_000), rtt: Span::from_millis(80), duration: Span::from_secs(14) },
    Algorithm::Cubic | Algorithm::Dctcp | Algorithm::Reno => {
        Path { rate: Rate(4_000_000), rtt: Span::from_millis(60), duration: Span::from_secs(8) }
    }
};

/// A path with windows of hundreds of packets, in bursts.
const FAST: fn(Algorithm) -> Path =
    |_| Path { rate: Rate::from_mbps(100), rtt: Span::from_millis(40), duration: Span::from_millis(700) };

/// Time for which a packet is held back. It exceeds a quarter of the round-trip time, the reordering window of a
/// sender.
const HELD_BACK: Span = Span::from_millis(25);

/// Returns the time by which the other flow starts earlier. The first packet of DCTCP must not be lost at the end of
/// the other flow's slow start, because Linux requests ECN only once.
fn head_start(algorithm: Algorithm) -> Span {
    Span::from_millis(if algorithm == Algorithm::Dctcp { 1_000 } else { 500 })
}

/// A queue that marks packets that have waited for 10 ms, and drops only packets that do not fit.
const STEP: Queue = Queue::Codel {
    target_ns: Span::from_secs(1),
    interval_ns: Span::from_secs(1),
    ecn: true,
    ce_threshold_ns: Some(Span::from_millis(10)),
};

const ENDLESS: fn() -> Load = || Load::Unlimited;

/// Transfers of 100 kB, with pauses longer than the retransmission timeout.
const PAUSES: fn() -> Load =
    || Load::Requests { size_bytes: Bytes(100_000), think_ns: Span::from_millis(1_200), count: None };

/// Small transfers that do not fill the path.
const PIECES: fn() -> Load =
    || Load::Requests { size_bytes: Bytes(7_000), think_ns: Span::from_millis(20), count: None };

/// Transfers of a few segments with long pauses: losses are detected by timers.
const TRICKLE: fn() -> Load =
    || Load::Requests { size_bytes: Bytes(4_000), think_ns: Span::from_millis(400), count: None };

/// Transfers of less than a segment: the receiver delays its acknowledgement.
const TINY: fn() -> Load = || Load::Requests { size_bytes: Bytes(600), think_ns: Span::from_millis(60), count: None };

const PLAIN: Scene = Scene {
    name: "clean",
    about: "no loss",
    path: SLOW,
    buffer_percent: None,
    loss_percent: |_| 0.0,
    reorder_percent: 0.0,
    ack_jitter: Span::ZERO,
    load: ENDLESS,
    is_marking: true,
    is_competing: false,
};

/// All scenes.
pub const SCENES: [Scene; 13] = [
    PLAIN,
    Scene { name: "lossy", about: "1 % random loss", buffer_percent: Some(200), loss_percent: |_| 1.0, ..PLAIN },
    Scene {
        name: "heavy-loss",
        about: "random loss of 25 % (BBR, which mistakes it for a policer) or 15 %",
        buffer_percent: Some(200),
        loss_percent: |algorithm| if algorithm == Algorithm::Bbr { 25.0 } else { 15.0 },
        ..PLAIN
    },
    Scene {
        name: "reordering",
        about: "2 % of packets are reordered",
        buffer_percent: Some(200),
        reorder_percent: 2.0,
        ..PLAIN
    },
    Scene { name: "shallow", about: "a queue of half a BDP", buffer_percent: Some(50), is_marking: false, ..PLAIN },
    Scene { name: "deep", about: "a queue of 6 BDP", buffer_percent: Some(600), is_marking: false, ..PLAIN },
    Scene { name: "fast", about: "100 Mbit/s", path: FAST, buffer_percent: Some(50), ..PLAIN },
    Scene {
        name: "bunched",
        about: "acknowledgements arrive in bursts",
        buffer_percent: Some(200),
        ack_jitter: Span::from_millis(15),
        ..PLAIN
    },
    Scene {
        name: "competing",
        about: "a competing flow that ends early",
        buffer_percent: Some(200),
        is_competing: true,
        ..PLAIN
    },
    Scene {
        name: "idle",
        about: "pauses longer than the retransmission timeout",
        buffer_percent: Some(50),
        load: PAUSES,
        ..PLAIN
    },
    Scene {
        name: "app-limited",
        about: "small writes, 1 % random loss",
        buffer_percent: Some(200),
        loss_percent: |_| 1.0,
        load: PIECES,
        ..PLAIN
    },
    Scene {
        name: "trickle",
        about: "a few segments at a time, 10 % random loss",
        buffer_percent: Some(200),
        loss_percent: |_| 10.0,
        load: TRICKLE,
        ..PLAIN
    },
    Scene {
        name: "tiny",
        about: "less than a segment at a time, 30 % random loss for DCTCP",
        buffer_percent: Some(200),
        // In its other scenes, DCTCP has no timeout that reduces the window.
        loss_percent: |algorithm| if algorithm == Algorithm::Dctcp { 30.0 } else { 0.0 },
        load: TINY,
        ..PLAIN
    },
];

impl Scene {
    /// Returns the plan for the engine: one experiment, in which the flow `recorded` has the algorithm to record.
    pub fn plan(&self, algorithm: Algorithm) -> Plan {
        let Path { rate, rtt, duration } = (self.path)(algorithm);
        let bdp = rate.bytes_in(rtt);
        let buffer = match self.buffer_percent {
            Some(percent) => Buffer::Bytes { bytes: Bytes((bdp.0 * percent / 100).max(3_000)) },
            None => Buffer::Packets { packets: Packets(100_000) },
        };
        let mut flows = vec![Flow::new("recorded", algorithm.recorded_name(), (self.load)())];
        if self.is_competing {
            let other = if algorithm == Algorithm::Cubic { "bbr" } else { "cubic" };
            // The other flow starts first, so that the round-trip time falls when it ends.
            flows[0].start_ns = Time::ZERO + head_start(algorithm);
            flows.push(Flow { stop_ns: Some(Time(duration.0 / 2)), ..Flow::new("other", other, Load::Unlimited) });
        }
        let forward = Link {
            capacity: Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: rate }] },
            buffer,
            queue: if algorithm == Algorithm::Dctcp && self.is_marking { STEP } else { Queue::Fifo {} },
            loss: Loss::Bernoulli { ratio: percent((self.loss_percent)(algorithm)) },
            reorder: percent(self.reorder_percent),
            reorder_delay_ns: HELD_BACK,
            ..link(rtt)
        };
        let experiment = Experiment {
            experiment: 0,
            repetition: 0,
            sweep: BTreeMap::new(),
            seed: 1,
            duration_ns: Some(duration),
            sample_interval_ns: Span::ZERO,
            start_jitter_ns: Span::ZERO,
            ipv6: false,
            rtt_ns: rtt,
            forward,
            reverse: Link { jitter_ns: self.ack_jitter, ..link(rtt) },
            hosts: ["sender", "receiver"].map(|name| (name.to_owned(), host())).into(),
            flows,
            background: Vec::new(),
            engine: Choices { link: Emulator::Relay, traffic: Generator::Builtin, offloads: false, record: false },
        };
        Plan {
            format: FORMAT,
            engine: "kernel".to_owned(),
            name: format!("lockstep-{}-{}", algorithm.name(), self.name),
            about: self.about.to_owned(),
            source: String::new(),
            scenario_toml: String::new(),
            traces: BTreeMap::new(),
            profiles: BTreeMap::new(),
            experiments: vec![experiment],
        }
    }
}

fn percent(percent: f64) -> Probability {
    Probability::new(percent / 100.0).expect("a probability")
}

fn link(rtt: Span) -> Link {
    Link {
        capacity: Capacity::Unlimited,
        buffer: Buffer::Packets { packets: Packets(100_000) },
        queue: Queue::Fifo {},
        loss: Loss::Bernoulli { ratio: Probability::NEVER },
        duplicate: Probability::NEVER,
        delay_ns: Span(rtt.0 / 2),
        jitter_ns: Span::ZERO,
        allow_reordering: false,
        reorder: Probability::NEVER,
        reorder_delay_ns: Span::ZERO,
        policer: None,
        aggregation: None,
        ack_thinning: None,
        offloads: false,
        profile: None,
    }
}

fn host() -> Host {
    Host {
        sndbuf_max_bytes: Bytes(4 << 20),
        rcvbuf_max_bytes: Bytes(6 << 20),
        delay_jitter_ns: Span::ZERO,
        cpu: None,
        second_cpu: false,
        co_tenants: 0,
        kernel: None,
        offloads: false,
        interrupt_coalescing_ns: Span::ZERO,
        qdisc: None,
    }
}
