//! A plan and rows to write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thalweg_plan::plan::{Buffer, Capacity, Choices, Experiment, Link, Loss, Plan, Queue, Step, SweepValue};
use thalweg_store::{Error, Host, Id, RunDirectory, RunFile};
use thalweg_trace::{FlowRow, PacketRow, QueueRow, SampleRow, Sink, StateRow};
use thalweg_units::{Bytes, Probability, Rate, Span, Time};

pub fn link(capacity: Capacity) -> Link {
    Link {
        capacity,
        buffer: Buffer::Bytes { bytes: Bytes(100_000) },
        queue: Queue::Fifo {},
        loss: Loss::Bernoulli { ratio: Probability::NEVER },
        duplicate: Probability::NEVER,
        delay_ns: Span::from_millis(20),
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

pub fn experiment(repetition: u32) -> Experiment {
    Experiment {
        experiment: 0,
        repetition,
        sweep: sweep(),
        seed: 1 + u64::from(repetition),
        duration_ns: Some(Span::from_secs(1)),
        sample_interval_ns: Span::from_millis(10),
        start_jitter_ns: Span::ZERO,
        ipv6: false,
        rtt_ns: Span::from_millis(40),
        forward: link(Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate(1_000_000) }] }),
        reverse: link(Capacity::Unlimited),
        hosts: BTreeMap::new(),
        flows: Vec::new(),
        background: Vec::new(),
        engine: Choices::default(),
    }
}

pub fn plan(repetitions: u32) -> Plan {
    Plan {
        format: 1,
        engine: "sim".to_owned(),
        name: "small".to_owned(),
        about: String::new(),
        source: String::new(),
        scenario_toml: String::new(),
        traces: BTreeMap::new(),
        profiles: BTreeMap::new(),
        experiments: (0..repetitions).map(experiment).collect(),
    }
}

pub fn run_of(plan: Plan) -> RunFile {
    RunFile::new(plan, "0.1.0", "1", Host::default(), None)
}

pub fn sweep() -> BTreeMap<String, SweepValue> {
    BTreeMap::from([
        ("path.buffer".to_owned(), SweepValue::Text("1bdp".to_owned())),
        ("path.loss".to_owned(), SweepValue::Number(0.01)),
        ("engine.offloads".to_owned(), SweepValue::Bool(true)),
    ])
}

pub fn flow(name: &str, connection: u64, fct_us: Option<u64>) -> FlowRow {
    FlowRow {
        experiment: 0,
        repetition: 0,
        flow: Arc::from(name),
        copy: 0,
        connection,
        transfer: 0,
        cc: Arc::from("cubic"),
        host: Arc::from("sender"),
        direction: Some("down"),
        size_bytes: Some(u64::MAX),
        start_us: 10,
        end_us: 20,
        completed: fct_us.is_some(),
        fct_us,
        acked_bytes: 1,
        goodput_bps: 0.5,
        segments: 1,
        retransmits: Some(0),
        timeouts: Some(0),
        recoveries: Some(0),
        undos: None,
        marked_segments: None,
        rtt_min_us: None,
        rtt_mean_us: None,
        rtt_p50_us: None,
        rtt_p95_us: None,
        rtt_p99_us: None,
        item: None,
        bitrate_bps: None,
        stall_us: None,
        lost_packets: None,
        delay_min_us: None,
        delay_mean_us: None,
        delay_p95_us: None,
        untrustworthy: None,
    }
}

pub fn queue(t_us: u64) -> QueueRow {
    QueueRow {
        experiment: 0,
        repetition: 0,
        link: "forward",
        t_us,
        backlog_bytes: t_us * 3,
        backlog_packets: 1,
        dropped_packets: 0,
        early_drops: None,
        policed_packets: None,
        lost_packets: 0,
        marked_packets: 0,
        sent_packets: t_us,
        sent_bytes: t_us * 1500,
        sojourn_sum_us: None,
        capacity_bytes: None,
    }
}

pub fn state(connection: u64, t_us: u64, key: &'static str) -> StateRow {
    StateRow {
        experiment: 0,
        repetition: 0,
        flow: Arc::from("large"),
        copy: 0,
        connection,
        t_us,
        key,
        value: t_us as f64 + 0.5,
    }
}

pub fn packet(number: u64) -> PacketRow {
    PacketRow {
        experiment: 0,
        repetition: 0,
        link: "forward",
        t_us: number * 10,
        number,
        fate: "queued",
        size_bytes: 1500,
        backlog_bytes: 3000,
        cause: None,
        sojourn_us: None,
        marked: None,
    }
}

pub fn some_rows(sink: &mut dyn Sink) {
    sink.flow(flow("large", 0, Some(10)));
    sink.queue(queue(10_000));
    sink.sample(SampleRow {
        experiment: 0,
        repetition: 0,
        flow: Arc::from("large"),
        copy: 0,
        connection: 0,
        t_us: 10_000,
        cwnd_packets: Some(10),
        ssthresh_packets: None,
        inflight_packets: Some(10),
        pacing_rate_bps: None,
        delivery_rate_bps: Some(1_000_000),
        srtt_us: Some(40_000),
        min_rtt_us: Some(40_000),
        acked_bytes: 1448,
        segments: 10,
        retransmits: Some(0),
        marked_segments: None,
        ca_state: Some("open"),
        delay_us: None,
    });
    sink.state(state(0, 10_000, "pacing_gain"));
    sink.packet(packet(0));
}

pub fn commit(directory: &RunDirectory, id: &Id, rows: impl FnOnce(&mut dyn Sink)) -> Result<(), Error> {
    let mut tables = directory.begin(id, &sweep(), &[])?;
    rows(&mut tables);
    tables.commit()
}

/// Completes an experiment whose packets are recorded, with a capture of these bytes.
pub fn commit_recorded(
    directory: &RunDirectory,
    id: &Id,
    capture: &[u8],
    rows: impl FnOnce(&mut dyn Sink),
) -> Result<(), Error> {
    let mut tables = directory.begin(id, &sweep(), &[])?;
    tables.begin_packets()?;
    fs::write(tables.begin_capture()?, capture).unwrap();
    rows(&mut tables);
    tables.commit()
}

pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { paths.extend(files(&path)) } else { paths.push(path) }
    }
    paths.retain(|path| path.file_name().unwrap() != ".lock");
    paths.sort();
    paths
}
