//! The senders of flows that iperf3 makes.

use crate::clock::Clock;
use crate::diag::{Sampler, TcpInfo};
use crate::error::Error;
use crate::protocol::{self, FlowReport, HostEvent};
use crate::stage::{HostReport, Stage};
use crate::traffic::beside::Prepared;
use crate::traffic::iperf3::report::{Report, StreamReport};
use crate::traffic::iperf3::{not_started, plan};
use crate::traffic::rows::{self, Ended};
use crate::traffic::sampling::Sample;
use crate::traffic::socket::ports::{Ports, Who};
use crate::traffic::socket::{algorithm, limits};
use crate::traffic::timers::Timers;
use crate::traffic::{Part, sys};
use crate::wakeup::Wakeup;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;
use thalweg_plan::plan::Experiment;
use thalweg_units::{Bytes, Span, Time};

/// Between two looks for a flow's connections, which iperf3 opens after it has negotiated.
const LOOK: Span = Span::from_millis(1);

/// How long iperf3 may take to say what it has when it is interrupted.
const PATIENCE: Duration = Duration::from_secs(2);

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Iperf3Event {
    Start(usize),
    /// Whether a flow's connections are there is looked at.
    Look(usize),
    Stop(usize),
    End,
}

/// A flow's process.
#[derive(Debug)]
struct Client {
    group: Pid,
    started: Time,
    /// When we interrupted it.
    interrupted: Option<Time>,
    /// By local port: when each stream was first seen established, and what the kernel told of it last.
    streams: BTreeMap<u16, (Time, TcpInfo)>,
    /// What it said at its end.
    report: Option<Report>,
}

/// Plays a sender with iperf3 until it is told to stop.
///
/// # Errors
/// `not-on-iperf3` for flows that it cannot make, `no-tool` if it is not there, those of algorithms.
pub(in crate::traffic) fn send(stage: &Stage<'_>, experiment: &Experiment, part: &Part) -> Result<HostReport, Error> {
    let flows = &part.flows;
    plan::check(experiment)?;
    algorithm::check(experiment, flows)?;
    process::Command::new("iperf3").arg("--version").output().map_err(|error| not_started(&error))?;
    let prepared = Prepared::new(experiment)?;
    let sampler = Sampler::open()?;
    let wakeup = Wakeup::open().map_err(limits::exhausted)?;
    let ports = Arc::new(Ports::default());
    let copies = name_ports(experiment, &ports);

    let clock = stage.wait_for_start()?;
    let beside = prepared.start(experiment, &ports, part, clock)?;
    let (done, reports) = mpsc::channel();
    let mut clients = Clients {
        stage,
        experiment,
        to: &part.to,
        clock,
        sampler,
        wakeup,
        done,
        reports,
        of: BTreeMap::new(),
        is_over: false,
    };
    clients.run(flows)?;

    let samples = beside.finish()?;
    let ended = clients.rows(flows, &copies, &samples.rows);
    rows::tell(stage.events, &|who| copies[who.series as usize], ended, &samples.rows, &HashMap::new());
    let mut stopped = HostReport { measured: samples.measured, untrustworthy: Vec::new() };
    stopped.untrustworthy.extend(samples.untrustworthy);
    stopped.untrustworthy.extend(clients.failures());
    Ok(stopped)
}

/// Says whose the streams' ports are, so that the samples know. The result: flow and copy of each series.
fn name_ports(experiment: &Experiment, ports: &Ports) -> Vec<(usize, u64)> {
    let mut copies = Vec::new();
    for (flow, config) in experiment.flows.iter().enumerate() {
        for copy in 0..config.count {
            let port = plan::first_local_port(experiment, flow) + copy as u16;
            ports.take(port, Who { series: copies.len() as u32, connection: 0 });
            copies.push((flow, copy.into()));
        }
    }
    copies
}

struct Clients<'a> {
    stage: &'a Stage<'a>,
    experiment: &'a Experiment,
    to: &'a BTreeMap<usize, SocketAddrV4>,
    clock: Clock,
    sampler: Sampler,
    /// Readable when a process has ended.
    wakeup: Wakeup,
    done: Sender<(usize, Vec<u8>)>,
    reports: Receiver<(usize, Vec<u8>)>,
    /// By flow.
    of: BTreeMap<usize, Client>,
    /// Whether the experiment's end has passed.
    is_over: bool,
}

impl Clients<'_> {
    fn run(&mut self, flows: &[usize]) -> Result<(), Error> {
        let mut timers = Timers::new(self.clock)?;
        for flow in flows {
            timers.enter(self.experiment.flows[*flow].start_ns, Iperf3Event::Start(*flow));
            if let Some(stop) = self.experiment.flows[*flow].stop_ns {
                timers.enter(stop, Iperf3Event::Stop(*flow));
            }
        }
        if let Some(duration) = self.experiment.duration_ns {
            timers.enter(Time::ZERO + duration, Iperf3Event::End);
        }
        loop {
            timers.arm()?;
            let stage = self.stage;
            let mut fds = [
                PollFd::from_borrowed_fd(stage.commands.wakeup(), PollFlags::IN),
                PollFd::from_borrowed_fd(timers.fd(), PollFlags::IN),
                PollFd::new(&self.wakeup, PollFlags::IN),
            ];
            // An interruption is as good as an event: all is looked at below.
            let _ = poll(&mut fds, None);
            self.take_reports();
            while let Some((_, event)) = timers.due() {
                match event {
                    Iperf3Event::Start(flow) if !self.is_over => {
                        self.start(flow)?;
                        timers.enter(self.clock.now() + LOOK, Iperf3Event::Look(flow));
                    }
                    Iperf3Event::Look(flow) if !self.is_over && self.is_waiting(flow) => {
                        self.look()?;
                        timers.enter(self.clock.now() + LOOK, Iperf3Event::Look(flow));
                    }
                    Iperf3Event::Stop(flow) => self.interrupt(&[flow])?,
                    Iperf3Event::End => {
                        self.is_over = true;
                        self.interrupt(flows)?;
                    }
                    Iperf3Event::Start(_) | Iperf3Event::Look(_) => {}
                }
            }
            if stage.commands.is_stopped() {
                self.is_over = true;
                self.interrupt(flows)?;
                self.wait_for_the_rest();
                return Ok(());
            }
        }
    }

    fn start(&mut self, flow: usize) -> Result<(), Error> {
        let mut command = process::Command::new("iperf3");
        command.args(plan::client_arguments(self.experiment, flow, self.to[&flow]));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let child = sys::die_with_us(&mut command).spawn().map_err(|error| not_started(&error))?;
        let client = Client {
            group: Pid::from_child(&child),
            started: self.clock.now(),
            interrupted: None,
            streams: BTreeMap::new(),
            report: None,
        };
        let (done, wakeup) = (self.done.clone(), self.wakeup.clone());
        let wait = move || {
            let printed = child.wait_with_output().map(|output| output.stdout).unwrap_or_default();
            // The receiver is closed: the result is no longer needed.
            let _ = done.send((flow, printed));
            wakeup.notify();
        };
        thread::Builder::new().name("iperf3".to_owned()).spawn(wait).map_err(|error| not_started(&error))?;
        self.of.insert(flow, client);
        Ok(())
    }

    fn take_reports(&mut self) {
        self.wakeup.clear();
        while let Ok((flow, printed)) = self.reports.try_recv() {
            self.take_report(flow, &printed);
        }
    }

    fn take_report(&mut self, flow: usize, printed: &[u8]) {
        let Some(client) = self.of.get_mut(&flow) else { return };
        client.report = Some(Report::read(printed));
        if !self.is_over {
            self.stage.events.send(&HostEvent::Over { flow: self.experiment.flows[flow].name.clone() });
        }
    }

    /// Whether streams of a flow have not been seen yet.
    fn is_waiting(&self, flow: usize) -> bool {
        let streams = self.experiment.flows[flow].count as usize;
        self.of.get(&flow).is_some_and(|client| client.report.is_none() && client.streams.len() < streams)
    }

    /// Takes down what the kernel tells of all streams.
    fn look(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        let (clients, experiment) = (&mut self.of, self.experiment);
        self.sampler.dump(&mut |socket| {
            for (flow, client) in &mut *clients {
                let first = plan::first_local_port(experiment, *flow);
                let ports = first..first + experiment.flows[*flow].count as u16;
                if client.report.is_none() && ports.contains(&socket.local_port) {
                    client.streams.entry(socket.local_port).or_insert((now, socket.info)).1 = socket.info;
                }
            }
        })
    }

    /// Ends flows now; they say then what they have.
    fn interrupt(&mut self, flows: &[usize]) -> Result<(), Error> {
        self.look()?;
        for flow in flows {
            let Some(client) = self.of.get_mut(flow) else { continue };
            if client.report.is_none() && client.interrupted.is_none() {
                client.interrupted = Some(self.clock.now());
                let _ = kill_process_group(client.group, Signal::INT);
            }
        }
        Ok(())
    }

    fn wait_for_the_rest(&mut self) {
        for signal in [None, Some(Signal::KILL)] {
            let running = self.of.values().filter(|client| client.report.is_none());
            let groups: Vec<Pid> = running.map(|client| client.group).collect();
            for group in groups {
                if let Some(signal) = signal {
                    let _ = kill_process_group(group, signal);
                }
            }
            while self.of.values().any(|client| client.report.is_none()) {
                let Ok((flow, printed)) = self.reports.recv_timeout(PATIENCE) else { break };
                self.take_report(flow, &printed);
            }
        }
    }

    fn rows(&self, flows: &[usize], copies: &[(usize, u64)], samples: &[Sample]) -> Vec<Ended> {
        let mut latest: HashMap<Who, &Sample> = HashMap::new();
        latest.extend(samples.iter().map(|sample| (sample.who, sample)));
        let series = copies.iter().enumerate().filter(|(_, (flow, _))| flows.contains(flow));
        let row = |(index, &(flow, copy)): (usize, &(usize, u64))| {
            let who = Who { series: index as u32, connection: 0 };
            let client = self.of.get(&flow)?;
            let port = plan::first_local_port(self.experiment, flow) + copy as u16;
            let size = plan::size(&self.experiment.flows[flow]);
            let of = protocol::Connection { flow, copy, connection: 0 };
            let segments = latest.get(&who).map(|sample| u64::from(sample.segments));
            let report = client.row(of, port, size, segments);
            Some(Ended { who, report, offset: 0, srtt_us: None })
        };
        series.filter_map(row).collect()
    }

    /// What iperf3 could not do, unless it was interrupted.
    fn failures(&self) -> Vec<String> {
        let failed = self.of.iter().filter(|(_, client)| client.interrupted.is_none());
        let sentence = |(flow, client): (&usize, &Client)| {
            let error = client.report.as_ref().map_or(Some("it did not end"), |report| report.error.as_deref())?;
            Some(format!("iperf3 failed for the flow {}: {error}", self.experiment.flows[*flow].name))
        };
        failed.filter_map(sentence).collect()
    }
}

impl Client {
    fn row(&self, of: protocol::Connection, port: u16, size: Option<Bytes>, segments: Option<u64>) -> FlowReport {
        let seen = self.streams.get(&port);
        let start = seen.map_or(self.started, |(at, _)| *at);
        let report = self.report.as_ref();
        let stream = report.and_then(|report| report.stream(port));
        let is_done = report.is_some_and(|report| report.error.is_none());
        let lasted = stream.map_or(Span::ZERO, |stream: StreamReport| Span((stream.seconds.max(0.0) * 1e9) as u64));
        let end = self.interrupted.unwrap_or(start + lasted).max(start);
        let sent = stream.map_or(0, |stream| stream.bytes);
        let (_, info) = seen.copied().unwrap_or_default();
        let acked = if is_done { sent } else { info.acked_bytes };
        FlowReport {
            of,
            transfer: 0,
            size_bytes: size.map(|size| size.0),
            start_us: start.as_micros(),
            end_us: end.as_micros(),
            completed: is_done && size.is_some_and(|size| sent >= size.0),
            acked_bytes: size.map_or(acked, |size| acked.min(size.0)),
            segments: segments.unwrap_or(0).max(info.segments),
            retransmits: stream.map_or(info.retransmits, |stream| stream.retransmits),
            // Known at the moment of an interruption only.
            timeouts: info.timeouts.filter(|_| self.interrupted.is_some()),
            marked_segments: self.interrupted.map(|_| info.marked_segments),
            rtt_min_us: stream.and_then(|stream| stream.min_rtt_us).map(|rtt| rtt as f64),
            rtt_mean_us: stream.and_then(|stream| stream.mean_rtt_us).map(|rtt| rtt as f64),
            rtt_p50_us: None,
            rtt_p95_us: None,
            rtt_p99_us: None,
            item: None,
            bitrate_bps: None,
            stall_us: None,
        }
    }
}
