//! Runs experiments concurrently, each on one thread.

use super::guard;
use crate::engine::{Engine, Failure, Job, Outcome, Records};
use crate::engine_events::{EngineEvent, Output, seconds};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use thalweg_plan::labels::unused_columns;
use thalweg_plan::plan::Traces;
use thalweg_store::{Error, ExperimentId, RunDirectory};

/// Reason why no more experiments are started, other than a signal.
pub enum Halt {
    /// The run directory cannot be written.
    Store(Error),
    /// The reader of events has closed the pipe.
    NoReader,
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Store(error)
    }
}

/// Experiments to run.
pub struct Work<'a> {
    engine: &'a dyn Engine,
    directory: &'a RunDirectory,
    traces: Traces,
    /// Indices in the plan of the experiments to run.
    pending: &'a [usize],
    output: &'a Output,
    interrupted: &'a AtomicBool,
    halt: OnceLock<Halt>,
    next: AtomicUsize,
    finished: AtomicUsize,
    failed: AtomicUsize,
}

impl<'a> Work<'a> {
    /// Returns the work for the experiments of the plan whose indices are in `pending`.
    pub fn new(
        engine: &'a dyn Engine,
        directory: &'a RunDirectory,
        pending: &'a [usize],
        output: &'a Output,
        interrupted: &'a AtomicBool,
    ) -> Work<'a> {
        let [next, finished, failed] = std::array::from_fn(|_| AtomicUsize::new(0));
        let traces = directory.run().plan.named_traces();
        Work { engine, directory, traces, pending, output, interrupted, halt: OnceLock::new(), next, finished, failed }
    }

    /// Runs the experiments in the order of the plan, at most `threads` concurrently, until all are done or the run is
    /// stopped.
    pub fn do_all(&self, threads: usize) {
        std::thread::scope(|scope| {
            // This thread runs experiments, too: if the system refuses more threads, the existing ones suffice.
            for _ in 1..threads.min(self.pending.len()) {
                if thread::Builder::new().spawn_scoped(scope, || self.do_one_after_another()).is_err() {
                    break;
                }
            }
            self.do_one_after_another();
        });
    }

    /// Returns the number of completed experiments.
    pub fn finished(&self) -> usize {
        self.finished.load(Ordering::Relaxed)
    }

    /// Returns the number of failed experiments.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the reason of the stop, if it was not a signal.
    pub fn into_halt(self) -> Option<Halt> {
        self.halt.into_inner()
    }

    fn do_one_after_another(&self) {
        while !self.must_stop() {
            let Some(&index) = self.pending.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(halt) = self.do_one(index) {
                // The first reason is kept.
                let _ = self.halt.set(halt);
            }
        }
    }

    fn must_stop(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.halt.get().is_some()
    }

    fn do_one(&self, index: usize) -> Result<(), Halt> {
        let run = self.directory.run();
        let (id, experiment) = (&run.experiments[index], &run.plan.experiments[index]);
        self.say(&EngineEvent::Started(id))?;
        let start = Instant::now();
        let outcome = guard::catch(|| {
            let mut tables = self.directory.begin(&id.id, &experiment.sweep, &unused_columns(experiment))?;
            let health = tables.health();
            let stop = || self.must_stop() || health.is_lost();
            let records = if experiment.engine.record { self.engine.records() } else { Records::Nothing };
            if records != Records::Nothing {
                tables.begin_packets()?;
            }
            let must_capture = records == Records::Capture;
            let capture = must_capture.then(|| tables.begin_capture().map(Path::to_owned)).transpose()?;
            let programs = experiment.has_programs().then(|| self.directory.begin_programs(&id.id)).transpose()?;
            let job = Job {
                experiment,
                id: id.id.as_str(),
                traces: &self.traces,
                is_cancelled: &stop,
                log: &|lines| self.log(lines),
                capture: capture.as_deref(),
                programs: programs.as_deref(),
                session: None,
            };
            match self.engine.run(&job, &mut tables) {
                Ok(outcome) => tables.commit().map(|()| Ok(outcome)),
                Err(failure) => tables.discard().map(|()| Err(failure)),
            }
        });
        match outcome {
            Ok(Ok(Ok(outcome))) => self.finish(id, &outcome, start),
            Ok(Ok(Err(Failure::Cancelled))) => Ok(()),
            Ok(Ok(Err(Failure::Failed(error)))) => self.fail(id, &error.code, &error.sentence()),
            Ok(Err(error)) => Err(Halt::Store(error)),
            Err(panic_message) => self.fail(id, "bug", &self.describe_bug(index, &panic_message)),
        }
    }

    fn finish(&self, id: &ExperimentId, outcome: &Outcome, start: Instant) -> Result<(), Halt> {
        self.finished.fetch_add(1, Ordering::Relaxed);
        for reason in &outcome.performance.untrustworthy {
            self.say(&EngineEvent::Untrustworthy { id, reason })?;
        }
        self.say(&EngineEvent::Finished {
            id,
            seconds: seconds(start.elapsed()),
            simulated_s: outcome.performance.lasted.as_secs_f64(),
            packets: outcome.packets,
            measured: &outcome.performance.measured,
        })
    }

    fn fail(&self, id: &ExperimentId, code: &str, message: &str) -> Result<(), Halt> {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.say(&EngineEvent::Failed { id, code, message })
    }

    fn describe_bug(&self, index: usize, panic: &str) -> String {
        let (directory, number) = (self.directory.path().display(), index + 1);
        let count = self.directory.run().experiments.len();
        format!(
            "this is a bug in thalweg {}: {panic}\nplease report it with {directory}/run.json; this command repeats \
             it: thalweg-engine run --plan '{directory}/run.json' --out '{directory}-replay' \
             --shard {number}/{count}",
            env!("CARGO_PKG_VERSION"),
        )
    }

    /// Appends to `commands.log`. After an error, no more experiments are started.
    fn log(&self, lines: &str) {
        if let Err(error) = self.directory.log(lines) {
            let _ = self.halt.set(error.into());
        }
    }

    /// Writes an event to the journal and to standard output.
    fn say(&self, event: &EngineEvent<'_>) -> Result<(), Halt> {
        self.directory.note(event)?;
        self.output.emit(event).map_err(|_| Halt::NoReader)
    }
}
