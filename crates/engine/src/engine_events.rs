//! What a command says on standard output while it works: a JSON object per line.

use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Mutex;
use thalweg_lab::protocol::ConnectionReport;
use thalweg_store::{ExperimentId, Merged, Problem};

/// Something that has happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent<'a> {
    /// What is about to be run.
    Plan {
        /// Experiments that were asked for.
        experiments: usize,
        /// Those that were complete before.
        present: usize,
        /// Those that are run now.
        pending: usize,
        /// Experiments at a time.
        threads: usize,
    },
    /// An experiment has begun.
    Started(&'a ExperimentId),
    /// An experiment is complete.
    Finished {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// How long it took on this machine.
        seconds: f64,
        /// How long it took on its own clock.
        simulated_s: f64,
        /// Packets that passed the bottleneck.
        packets: u64,
        /// What the engine measured of itself.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        measured: &'a BTreeMap<String, f64>,
    },
    /// There is a reason not to believe an experiment.
    Untrustworthy {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// The reason.
        reason: &'a str,
    },
    /// A connection of a session.
    Connection(&'a ConnectionReport),
    /// An experiment did not run to its end.
    Failed {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// Short name of the reason.
        code: &'a str,
        /// The reason.
        message: &'a str,
    },
    /// The user asked to stop before all was done.
    Interrupted,
    /// All that was asked for has been tried.
    Done {
        /// Experiments completed now.
        finished: usize,
        /// Experiments that failed.
        failed: usize,
        /// Experiments that were complete before.
        present: usize,
        /// How long it took.
        seconds: f64,
    },
    /// Run directories have been joined.
    Merged {
        /// Experiments of the plan.
        experiments: usize,
        /// Experiments that were taken over now.
        copied: usize,
        /// Experiments that were there before.
        present: usize,
        /// Experiments that are still to be run.
        missing: usize,
    },
    /// The command cannot go on.
    Error {
        /// Short name.
        code: &'a str,
        /// File, key or flag.
        place: &'a str,
        /// What was found there.
        found: &'a str,
        /// What was expected.
        expected: &'a str,
        /// What to do about it.
        hint: &'a str,
        /// All in a sentence.
        message: String,
    },
}

impl<'a> EngineEvent<'a> {
    /// The event of a problem.
    pub fn error(problem: &'a Problem) -> EngineEvent<'a> {
        let Problem { code, place, found, expected, hint, .. } = problem;
        EngineEvent::Error { code, place, found, expected, hint, message: problem.sentence() }
    }

    /// The event of a merge.
    pub fn merged(merged: &Merged) -> EngineEvent<'a> {
        let Merged { experiments, copied, present, missing } = *merged;
        EngineEvent::Merged { experiments, copied, present, missing }
    }
}

/// Where events go, from any thread.
pub struct Output {
    writer: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    /// Writes events to `writer`.
    pub fn new(writer: impl Write + Send + 'static) -> Output {
        Output { writer: Mutex::new(Box::new(writer)) }
    }

    /// Writes an event, so that a reader sees it at once.
    ///
    /// # Errors
    /// If the reader has closed the pipe.
    pub fn emit(&self, event: &EngineEvent<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        let mut writer = self.writer.lock().expect("no thread panics while it writes an event");
        writer.write_all(&line)?;
        writer.flush()
    }
}

/// Seconds to the millisecond, as events have them.
pub fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}
