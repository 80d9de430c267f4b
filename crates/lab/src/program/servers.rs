//! The servers of a host, which are started before the experiment and stopped after it.

use super::part::{Copy, Programs, name, size_of};
use super::process::{Process, Surroundings, Values};
use super::processes::are_busy;
use super::ready::{is_ready, last_words, missing};
use super::supervisor::Ending;
use crate::error::Error;
use crate::wakeup::Wakeup;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_plan::plan::{Experiment, Program};

/// Timeout for servers to become ready. Guests get longer, because QEMU may emulate their processor.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_IN_GUESTS: Duration = Duration::from_secs(90);

/// Time in which a server is busy is divided by this number before it counts towards the timeout: a busy machine delays
/// the start, but a server that computes forever must be given up.
const BUSY_DIVISOR: u32 = 6;

const PAUSE: Duration = Duration::from_millis(5);

/// Interval of the checks whether servers are busy, which read all of /proc.
const BUSY_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time between the readiness of the last server and the check whether one of them has exited.
const SETTLING: Duration = Duration::from_millis(100);

pub(super) struct Servers<'a> {
    experiment: &'a Experiment,
    running: BTreeMap<Copy, Process>,
    ended: Receiver<(Copy, Result<Ending, String>)>,
}

/// Returns the timeout for servers that are busy all the time.
pub(super) fn max_wait(in_guest: bool) -> Duration {
    patience(in_guest) * BUSY_DIVISOR
}

fn patience(in_guest: bool) -> Duration {
    if in_guest { PATIENCE_IN_GUESTS } else { PATIENCE }
}

impl<'a> Servers<'a> {
    /// Starts the servers of a host, and waits until they are ready.
    ///
    /// # Errors
    /// If a server cannot be started, exits, or is not ready before the timeout.
    pub fn start(experiment: &'a Experiment, programs: &Programs, wakeup: &Wakeup) -> Result<Servers<'a>, Error> {
        let (sender, ended) = mpsc::channel();
        let mut servers = Servers { experiment, running: BTreeMap::new(), ended };
        for served in &programs.serves {
            for copy in 0..u64::from(experiment.flows[served.flow].count) {
                let of = Copy { flow: served.flow, copy };
                let process = start_one(experiment, programs, (of, served.to.to_string()), &sender, wakeup)?;
                servers.running.insert(of, process);
            }
        }
        servers.wait_until_ready(patience(programs.in_guest))?;
        Ok(servers)
    }

    fn wait_until_ready(&mut self, patience: Duration) -> Result<(), Error> {
        let (mut waited, mut last_check) = (Duration::ZERO, Instant::now());
        let mut waiting: Vec<Copy> = self.running.keys().copied().collect();
        while !waiting.is_empty() {
            if let Ok((of, ending)) = self.ended.try_recv() {
                return Err(self.ended_early(of, ending));
            }
            waiting.retain(|of| {
                let (program, port) = program_of(self.experiment, *of);
                let process = &self.running[of];
                !is_ready(&program.ready, port, [&process.stdout, &process.stderr], process.started.elapsed())
            });
            let elapsed = last_check.elapsed();
            if elapsed >= BUSY_CHECK_INTERVAL {
                waited += if are_busy() { elapsed / BUSY_DIVISOR } else { elapsed };
                last_check = Instant::now();
            }
            if let Some(of) = waiting.first().filter(|_| waited > patience) {
                let (program, port) = program_of(self.experiment, *of);
                let process = &self.running[of];
                let message = format!(
                    "{} is not ready {} s after its start: {}; {}",
                    self.name(*of),
                    process.started.elapsed().as_secs(),
                    missing(&program.ready, port),
                    last_words(&process.stdout, &process.stderr)
                );
                return Err(Error::new(
                    "program-not-ready",
                    message,
                    "start it manually; if it prints a text when it is ready, set ready = {output = \"TEXT\"}",
                ));
            }
            thread::sleep(PAUSE);
        }
        // If a server daemonizes, its child becomes ready first, and the server itself exits shortly after.
        thread::sleep(SETTLING);
        if self.running.values().any(Process::has_exited) {
            if let Ok((of, ending)) = self.ended.recv() {
                return Err(self.ended_early(of, ending));
            }
        }
        Ok(())
    }

    fn ended_early(&self, of: Copy, ending: Result<Ending, String>) -> Error {
        let process = &self.running[&of];
        let (name, words) = (self.name(of), last_words(&process.stdout, &process.stderr));
        match ending {
            Err(why) => Error::new(
                "no-program",
                format!("{name} cannot run: {why}"),
                "thalweg check FILE reports what is missing",
            ),
            Ok(ending) if ending.left > 0 => Error::new(
                "program-in-background",
                format!("{name} {ending}; they were terminated"),
                "start it in the foreground, with an option such as --no-daemon",
            ),
            Ok(ending) => Error::new(
                "program-exited",
                format!("{name} {ending} before the experiment began; {words}"),
                "start it manually in the scenario's folder",
            ),
        }
    }

    /// Returns messages about servers that have exited since the last call, except those that were killed.
    pub fn failures(&mut self) -> Vec<String> {
        let mut sentences = Vec::new();
        while let Ok((of, ending)) = self.ended.try_recv() {
            // The exit of a server that `kill` has removed is received too.
            if self.running.contains_key(&of) {
                sentences.push(self.failed(of, ending));
                self.running.remove(&of);
            }
        }
        sentences
    }

    fn failed(&self, of: Copy, ending: Result<Ending, String>) -> String {
        self.ended_early(of, ending).message.replace(" before the experiment began", " during the experiment")
    }

    /// Stops the servers; returns messages about those that ignored SIGTERM, or had exited before.
    pub fn stop(mut self) -> Vec<String> {
        self.running.values_mut().for_each(Process::stop);
        let mut sentences = Vec::new();
        while !self.running.is_empty() {
            let Ok((of, ending)) = self.ended.recv() else { break };
            match &ending {
                Ok(ending) if ending.ignored_term => {
                    sentences.push(format!("{} ignored SIGTERM and was killed 2 s later", self.name(of)));
                }
                Ok(ending) if ending.stopped => {}
                _ if !self.running.contains_key(&of) => {}
                _ => sentences.push(self.failed(of, ending)),
            }
            self.running.remove(&of);
        }
        sentences
    }

    /// Kills a server without SIGTERM.
    pub fn kill(&mut self, of: Copy) {
        self.running.remove(&of);
    }

    /// Returns the servers whose end is not known.
    pub fn outputs(&self) -> impl Iterator<Item = (Copy, &Process)> {
        self.running.iter().map(|(of, process)| (*of, process))
    }

    fn name(&self, of: Copy) -> String {
        name("server", self.experiment, of)
    }
}

fn program_of(experiment: &Experiment, of: Copy) -> (&Program, u16) {
    let program = experiment.flows[of.flow].program.as_ref().expect("only flows with programs have servers");
    (program, program.port + of.copy as u16)
}

fn start_one(
    experiment: &Experiment,
    programs: &Programs,
    (of, address): (Copy, String),
    sender: &Sender<(Copy, Result<Ending, String>)>,
    wakeup: &Wakeup,
) -> Result<Process, Error> {
    let (program, port) = program_of(experiment, of);
    let flow = &experiment.flows[of.flow];
    let values = Values { server: address, port, size: size_of(flow), cc: flow.cc.clone() };
    let output = programs.folder.join(&flow.name);
    let surroundings = Surroundings { folder: &program.folder, output: &output, name: format!("server-{}", of.copy) };
    Process::start(&program.server, &values, &surroundings, (of, sender.clone()), wakeup)
}
