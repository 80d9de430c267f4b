//! The clients of a host: a process for each connection that the agenda opens.

use super::part::{Copy, Programs, name};
use super::process::{Process, Surroundings, Values};
use super::ready::last_words;
use super::supervisor::Ending;
use crate::clock::{Clock, monotonic_ns, timespec};
use crate::error::Error;
use crate::protocol::{Connection, HostEvent, ProgramRun};
use crate::stage::Stage;
use crate::stamps::Stamps;
use crate::wakeup::Wakeup;
use rustix::event::Timespec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::mpsc::{self, Receiver, Sender};
use thalweg_plan::plan::Experiment;
use thalweg_traffic::{Agenda, Randomness};
use thalweg_units::{Span, Time};

/// Number of consecutive failed clients after which a copy of a flow starts no more clients.
const MAX_FAILURES: u32 = 5;

const DISK_CHECK: Span = Span::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Open { series: usize },
    StopFlow { flow: usize },
    End,
}

struct Client {
    process: Process,
    of: Connection,
    size_bytes: Option<u64>,
    start: Time,
    /// Time at which SIGTERM was sent because the flow or the experiment ended.
    interrupted: Option<Time>,
    /// Whether [`Clients::kill_where`] has stopped the client, so that its failure is not reported again.
    is_killed: bool,
}

pub(super) struct Clients<'a> {
    experiment: &'a Experiment,
    programs: &'a Programs,
    clock: Clock,
    wakeup: &'a Wakeup,
    agenda: Agenda,
    timers: BinaryHeap<Reverse<(Time, Timer)>>,
    next_disk_check: Time,
    running: BTreeMap<usize, Client>,
    failures: BTreeMap<usize, u32>,
    sender: Sender<(usize, Result<Ending, String>)>,
    ended: Receiver<(usize, Result<Ending, String>)>,
    is_over: bool,
    runs: Vec<ProgramRun>,
    doubts: Vec<String>,
}

impl<'a> Clients<'a> {
    pub fn new(experiment: &'a Experiment, programs: &'a Programs, clock: Clock, wakeup: &'a Wakeup) -> Clients<'a> {
        let flows: Vec<usize> = programs.runs.iter().map(|run| run.flow).collect();
        let mut agenda = Agenda::new(experiment, Randomness::new(experiment).series, |flow| flows.contains(&flow));
        let opens = agenda.first_opens().into_iter().map(|(at, series)| (at, Timer::Open { series }));
        let stops =
            flows.iter().filter_map(|flow| Some((experiment.flows[*flow].stop_ns?, Timer::StopFlow { flow: *flow })));
        let end = experiment.duration_ns.map(|duration| (Time::ZERO + duration, Timer::End));
        let timers = opens.chain(stops).chain(end).map(Reverse).collect();
        let (sender, ended) = mpsc::channel();
        Clients {
            experiment,
            programs,
            clock,
            wakeup,
            agenda,
            timers,
            next_disk_check: Time::ZERO + DISK_CHECK,
            running: BTreeMap::new(),
            failures: BTreeMap::new(),
            sender,
            ended,
            is_over: false,
            runs: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Executes the timers that are due; returns the time until the next timer or disk check.
    ///
    /// # Errors
    /// If a client cannot be started.
    pub fn run_due(&mut self, stage: &Stage<'_>) -> Result<Timespec, Error> {
        // The clock returns zero before the start too.
        let has_begun = |clock: Clock| monotonic_ns() >= clock.monotonic_ns(Time::ZERO);
        while let Some(Reverse((due, timer))) = self.timers.peek().copied() {
            if due > self.clock.now() || !has_begun(self.clock) {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::End => {
                    self.is_over = true;
                    self.interrupt(|_| true);
                }
                _ if self.is_over => {}
                Timer::Open { series } => self.open(series, due)?,
                Timer::StopFlow { flow } => {
                    self.agenda.stop(flow);
                    self.interrupt(|of| of.flow == flow);
                }
            }
        }
        self.report_over(stage);
        let due = self.timers.peek().map_or(Time::MAX, |Reverse((due, _))| *due).min(self.next_disk_check);
        let wait_ns = self.clock.monotonic_ns(due).saturating_sub(monotonic_ns());
        Ok(timespec(wait_ns))
    }

    fn open(&mut self, series: usize, due: Time) -> Result<(), Error> {
        let Some(opening) = self.agenda.open(series, due) else { return Ok(()) };
        if let Some(next) = opening.next {
            self.timers.push(Reverse((next, Timer::Open { series })));
        }
        let (flow_index, copy) = self.agenda.copy_of(series);
        let flow = &self.experiment.flows[flow_index];
        let (Some(program), Some(run)) = (&flow.program, self.programs.runs.iter().find(|run| run.flow == flow_index))
        else {
            return Ok(());
        };
        let size_bytes = opening.size.map(|size| size.0);
        let port = program.port + copy as u16;
        let values = Values { server: run.to.to_string(), port, size: size_bytes, cc: flow.cc.clone() };
        let output = self.programs.folder.join(&flow.name);
        let files = format!("client-{copy}-{}", opening.number);
        let surroundings = Surroundings { folder: &program.folder, output: &output, name: files };
        let ended = (series, self.sender.clone());
        let start = self.clock.now();
        let process = Process::start(&program.client, &values, &surroundings, ended, self.wakeup)?;
        let of = Connection { flow: flow_index, copy, connection: opening.number };
        let client = Client { process, of, size_bytes, start, interrupted: None, is_killed: false };
        self.running.insert(series, client);
        Ok(())
    }

    /// Collects the results of clients that have exited.
    pub fn take_endings(&mut self, stage: &Stage<'_>) {
        while let Ok((series, ending)) = self.ended.try_recv() {
            self.take_ending(series, ending);
        }
        self.report_over(stage);
    }

    fn take_ending(&mut self, series: usize, ending: Result<Ending, String>) {
        let Some(client) = self.running.remove(&series) else { return };
        let now = self.clock.now();
        let of = Copy { flow: client.of.flow, copy: client.of.copy };
        let name = name("client", self.experiment, of);
        let is_success = matches!(&ending, Ok(ending) if ending.is_success());
        let failures = self.failures.entry(series).or_default();
        if is_success {
            *failures = 0;
        } else if client.interrupted.is_none() {
            *failures += 1;
        }
        match ending {
            Ok(ending) if ending.ignored_term => {
                self.doubts.push(format!("{name} ignored SIGTERM and was killed 2 s later"));
            }
            Ok(ending) if client.interrupted.is_none() && !ending.is_success() && !client.is_killed => {
                let words = last_words(&client.process.stdout, &client.process.stderr);
                self.doubts.push(format!("{name} {ending} (connection {}); {words}", client.of.connection));
            }
            Err(why) => self.doubts.push(format!("{name} cannot run: {why}")),
            Ok(_) => {}
        }
        if *failures >= MAX_FAILURES {
            self.doubts.push(format!("{name} failed {MAX_FAILURES} times in a row and is not started again"));
            self.agenda.end_app(series);
        }
        if let Some(next) = self.agenda.end(series, now) {
            self.timers.push(Reverse((next, Timer::Open { series })));
        }
        self.runs.push(ProgramRun {
            of: client.of,
            size_bytes: client.size_bytes,
            start_us: client.start.as_micros(),
            end_us: client.interrupted.unwrap_or(now).as_micros(),
            completed: is_success && client.interrupted.is_none(),
            is_interrupted: client.interrupted.is_some(),
            zero_realtime_us: Stamps::measure().realtime_ns(self.clock.monotonic_ns(Time::ZERO)) / 1000,
        });
    }

    fn report_over(&mut self, stage: &Stage<'_>) {
        while let Some(flow) = self.agenda.next_over() {
            let flow = self.experiment.flows[flow].name.clone();
            stage.events.send(&HostEvent::Over { flow });
        }
    }

    /// Handles the completion of a flow of another host.
    pub fn flow_over(&mut self, flow: &str) {
        self.agenda.flow_over(flow);
    }

    fn interrupt(&mut self, is_meant: impl Fn(&Connection) -> bool) {
        let now = self.clock.now();
        for client in self.running.values_mut().filter(|client| is_meant(&client.of) && client.interrupted.is_none()) {
            client.interrupted = Some(now);
            client.process.stop();
        }
    }

    /// Stops the clients that match; returns their copies.
    pub fn kill_where(&mut self, is_meant: impl Fn(&Process) -> bool) -> Vec<Copy> {
        let mut killed = Vec::new();
        for client in self.running.values_mut().filter(|client| !client.is_killed && is_meant(&client.process)) {
            client.is_killed = true;
            client.process.stop();
            killed.push(Copy { flow: client.of.flow, copy: client.of.copy });
        }
        killed
    }

    /// Returns whether the check of the programs' output size is due, and schedules the next check.
    pub fn is_disk_check_due(&mut self) -> bool {
        let now = self.clock.now();
        let is_due = now >= self.next_disk_check;
        if is_due {
            self.next_disk_check = now + DISK_CHECK;
        }
        is_due
    }

    /// Terminates the clients; returns the runs, and messages about errors.
    pub fn finish(mut self) -> (Vec<ProgramRun>, Vec<String>) {
        self.interrupt(|_| true);
        while !self.running.is_empty() {
            let Ok((series, ending)) = self.ended.recv() else { break };
            self.take_ending(series, ending);
        }
        (self.runs, self.doubts)
    }
}
