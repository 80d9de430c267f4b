//! The relay: emulated links between real interfaces.
//!
//! It is the router of a path. Packets from the senders' interfaces pass the outbox of their host and the forward link,
//! and leave on the receiver's interface; packets in the other direction pass the receiver's outbox and the reverse
//! link. Outboxes and links are those of the simulator, with the same random numbers, on a real clock.
//!
//! Packets of the other IP version, and packets whose destination is not a host at the other end of the path, are
//! ignored. The relay does not fragment packets, decrement their TTL or send ICMP messages.
//!
//! The relay measures its own effect on packets: lateness and losses ([`trust`]).

pub mod capture;
mod counters;
mod direction;
mod header;
mod interface;
mod lateness;
mod packet;
mod pump;
mod sleep_control;
mod sys;
mod thread;
mod trust;

use crate::error::Error;
use crate::packet_socket::BATCH;
use crate::protocol::{HostEvent, Port};
use crate::stage::{HostReport, Stage};
use crate::stamps::Stamps;
use capture::Recorder;
use direction::{Direction, Samples};
use interface::{Addresses, Interface};
use lateness::Lateness;
use packet::Pool;
use pump::{Pump, Side};
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_link::{Link, LinkError};
use thalweg_plan::plan::{self, Experiment};
use thalweg_traffic::{Outbox, Randomness};
use thalweg_units::{Bytes, MTU, Span, Time};

const BUFFERS: usize = 4096;

/// Runs the router: carries packets until the command `stop`.
///
/// # Errors
/// If a host or link of the experiment is invalid, an interface cannot be opened, the capture cannot be written, or
/// waiting for commands or packets fails.
pub fn carry(
    stage: &Stage<'_>,
    experiment: &Experiment,
    senders: &[Port],
    receiver: &Port,
    traces: &plan::Traces,
    capture: Option<&Path>,
) -> Result<HostReport, Error> {
    let recorder = capture.map(|path| Recorder::create(path, experiment.ipv6)).transpose()?;
    let [forward, reverse] = directions(experiment, senders, traces)?;
    let interfaces = senders.len() + 1;
    let open = |port: &Port| Interface::open(&port.interface, interfaces, experiment.engine.offloads, experiment.ipv6);
    let senders = side(senders, senders.iter().map(open).collect::<Result<_, _>>()?);
    let receiver = side(std::slice::from_ref(receiver), vec![open(receiver)?]);
    let pool = Pool::filled(BUFFERS);
    thread::be_punctual();

    let mut pump = Pump {
        clock: stage.wait_for_start()?,
        stamps: Stamps::measure(),
        pool,
        forward,
        reverse,
        senders,
        receiver,
        shortest_delay: experiment.forward.delay_ns.min(experiment.reverse.delay_ns),
        recorder,
        lateness: Lateness::default(),
        batch: Vec::with_capacity(BATCH),
        dues: Vec::with_capacity(BATCH),
    };
    let names = pump.senders.interfaces.iter().chain(&pump.receiver.interfaces);
    let names: Vec<String> = names.map(|interface| interface.name().to_owned()).collect();
    let dropped = || -> u64 {
        let counts = counters::dropped();
        names.iter().filter_map(|name| counts.get(name)).sum()
    };
    let (dropped_before, cpu_before) = (dropped(), thread::cpu_time());
    for side in [&mut pump.senders, &mut pump.receiver] {
        side.interfaces.iter_mut().for_each(Interface::reset);
    }
    pump.run(stage.commands).map_err(|error| {
        Error::new("relay-failed", format!("the relay cannot wait for packets: {error}"), "close other programs")
    })?;
    let end = pump.clock.now();
    let cpu = thread::cpu_time().saturating_sub(cpu_before);
    let interfaces = pump.senders.interfaces.iter().chain(&pump.receiver.interfaces);
    let dropped = dropped().saturating_sub(dropped_before) + interfaces.map(Interface::dropped).sum::<u64>();
    report(stage, experiment, pump, (end, cpu.as_secs_f64(), dropped))
}

fn report(
    stage: &Stage<'_>,
    experiment: &Experiment,
    pump: Pump,
    (end, cpu_s, dropped): (Time, f64, u64),
) -> Result<HostReport, Error> {
    let Pump { forward, reverse, mut recorder, lateness, .. } = pump;
    // The faster direction of those with data has shorter packet times, and is more sensitive to lateness.
    let (has_up, has_down) = (experiment.has_up_flows(), experiment.flows.iter().any(|flow| !flow.up));
    let up = has_up.then(|| reverse.link.capacity_bytes(end)).flatten();
    let down = (has_down || !has_up).then(|| forward.link.capacity_bytes(end)).flatten();
    let mean_time = |bytes: u64, capacity: Option<Bytes>| {
        let capacity = capacity.filter(|capacity| capacity.0 > 0);
        capacity.map_or(Span::ZERO, |capacity| end.since(Time::ZERO).scale(bytes, capacity.0))
    };
    let forward = forward.finish(end, &mut recorder);
    let reverse = reverse.finish(end, &mut recorder);
    let (loaded, capacity) = if has_down || !has_up { (&forward, down) } else { (&reverse, up) };
    let backlog_bytes = loaded.iter().map(|row| row.counters.backlog_bytes).sum::<u64>() / loaded.len().max(1) as u64;
    for row in forward.into_iter().chain(reverse) {
        stage.events.buffer(&HostEvent::Queue(Box::new(row)));
    }
    let is_recorded = recorder.is_some();
    let not_captured = recorder.map_or(Ok(0), Recorder::finish)?;
    let is_realtime = thread::is_realtime();
    let figures = trust::Figures {
        rtt: experiment.rtt_ns,
        packet_time: mean_time(MTU.0, down.max(up)),
        queueing: mean_time(backlog_bytes, capacity),
        usual_lateness_us: lateness.quantile_us(990),
        rare_lateness_us: lateness.quantile_us(999),
        worst_lateness_us: lateness.worst_us(),
        dropped,
        not_captured,
        is_realtime,
    };
    let wall_s = end.since(Time::ZERO).as_secs_f64();
    let mut measured: BTreeMap<String, f64> = [
        ("relay_packets", lateness.packets() as f64),
        ("relay_dropped_packets", dropped as f64),
        ("relay_lateness_p50_us", lateness.quantile_us(500)),
        ("relay_lateness_p99_us", lateness.quantile_us(990)),
        ("relay_lateness_p999_us", lateness.quantile_us(999)),
        ("relay_lateness_worst_us", lateness.worst_us()),
        ("relay_cpu_percent", if wall_s > 0.0 { 100.0 * cpu_s / wall_s } else { 0.0 }),
        ("relay_is_realtime", f64::from(u8::from(is_realtime))),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    if is_recorded {
        measured.insert("relay_capture_lost_packets".to_owned(), not_captured as f64);
    }
    Ok(HostReport { measured, untrustworthy: trust::doubts(&figures) })
}

fn directions(experiment: &Experiment, senders: &[Port], traces: &plan::Traces) -> Result<[Direction; 2], Error> {
    let randomness = Randomness::new(experiment);
    let place = |port: &Port| {
        experiment.hosts.keys().position(|name| *name == port.host).ok_or_else(|| unknown_host(experiment, &port.host))
    };
    let hosts = experiment.hosts.values().zip(randomness.hosts);
    let receiver = experiment.hosts.get("receiver").ok_or_else(|| unknown_host(experiment, "receiver"))?;
    let outboxes = [
        hosts.map(|(host, stream)| Outbox::new(host.delay_jitter_ns, stream)).collect(),
        vec![Outbox::new(receiver.delay_jitter_ns, randomness.receiver)],
    ];
    let [of_hosts, of_receiver] = outboxes;
    let direction = |is_forward: bool, config, stream, outboxes, outbox_of, extra_of| {
        let name = if is_forward { "forward" } else { "reverse" };
        let samples = Samples::every(experiment.sample_interval_ns);
        let seed = randomness.queues[usize::from(!is_forward)];
        let link = Link::new(config, traces, seed).map_err(|error| bad_link(name, &error))?;
        let (latest, offered) = (Time::ZERO, 0);
        Ok(Direction { is_forward, link, stream, outboxes, outbox_of, extra_of, samples, latest, offered })
    };
    let forward: Vec<Span> = senders.iter().map(|port| port.extra_rtt.scale(1, 2)).collect();
    let backward =
        senders.iter().zip(&forward).map(|(port, forward)| port.extra_rtt.saturating_sub(*forward)).collect();
    let outbox_of = senders.iter().map(place).collect::<Result<_, _>>()?;
    Ok([
        direction(true, &experiment.forward, randomness.forward, of_hosts, outbox_of, forward)?,
        direction(false, &experiment.reverse, randomness.reverse, of_receiver, vec![0; senders.len()], backward)?,
    ])
}

fn side(ports: &[Port], interfaces: Vec<Interface>) -> Side {
    let host = |(port, interface): (&Port, &Interface)| {
        (port.address, Addresses::new(interface.mac(), port.mac, port.address.is_ipv6()))
    };
    Side { hosts: ports.iter().zip(&interfaces).map(host).collect(), heads: vec![None; ports.len()], interfaces }
}

fn bad_link(name: &str, error: &LinkError) -> Error {
    Error::new(
        "bad-link",
        format!("{name}.{}: found {}, expected {}", error.place, error.found, error.expected),
        error.hint,
    )
}

fn unknown_host(experiment: &Experiment, name: &str) -> Error {
    let hosts: Vec<&str> = experiment.hosts.keys().map(String::as_str).collect();
    let message = format!("there is no host {name}; the experiment has {}", hosts.join(", "));
    Error::new("unknown-host", message, "thalweg run FILE creates a plan with every host that its flows use")
}
