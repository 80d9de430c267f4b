//! Events that a command reports while it works: a JSON object per line.

use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Mutex;
use thalweg_lab::protocol::ConnectionReport;
use thalweg_store::{ExperimentId, Merged, Problem};

/// An event.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent<'a> {
    /// Number of experiments to run.
    Plan {
        /// Requested experiments.
        experiments: usize,
        /// Experiments that were already complete.
        present: usize,
        /// Experiments that will be run.
        pending: usize,
        /// Maximum number of concurrent experiments.
        threads: usize,
    },
    /// An experiment has begun.
    Started(&'a ExperimentId),
    /// An experiment is complete.
    Finished {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// Wall-clock duration in seconds.
        seconds: f64,
        /// Duration on the experiment's own clock in seconds.
        simulated_s: f64,
        /// Packets that passed the bottleneck.
        packets: u64,
        /// The engine's measurements of itself.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        measured: &'a BTreeMap<String, f64>,
    },
    /// An experiment is untrustworthy.
    Untrustworthy {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// Reason why it is untrustworthy.
        reason: &'a str,
    },
    /// Result of a connection of a session.
    Connection(&'a ConnectionReport),
    /// An experiment failed.
    Failed {
        #[serde(flatten)]
        id: &'a ExperimentId,
        /// Short name of the reason.
        code: &'a str,
        /// The reason.
        message: &'a str,
    },
    /// The run stopped, because of a signal or because the reader of the events has closed the pipe.
    Interrupted,
    /// Every requested experiment is complete or has failed.
    Done {
        /// Experiments that were completed by this command.
        finished: usize,
        /// Experiments that failed.
        failed: usize,
        /// Experiments that were already complete.
        present: usize,
        /// Wall-clock duration in seconds.
        seconds: f64,
    },
    /// Run directories were merged.
    Merged {
        /// Experiments of the plan.
        experiments: usize,
        /// Experiments that were copied by this command.
        copied: usize,
        /// Experiments that were already complete.
        present: usize,
        /// Experiments that none of the directories contains.
        missing: usize,
    },
    /// The command cannot continue.
    Error {
        /// Short name of the problem.
        code: &'a str,
        /// File, key or flag.
        place: &'a str,
        /// Actual state.
        found: &'a str,
        /// Expected state.
        expected: &'a str,
        /// Remedy.
        hint: &'a str,
        /// Description of the problem as a sentence.
        message: String,
    },
}

impl<'a> EngineEvent<'a> {
    /// Returns the event for a problem.
    pub fn error(problem: &'a Problem) -> EngineEvent<'a> {
        let Problem { code, place, found, expected, hint, .. } = problem;
        EngineEvent::Error { code, place, found, expected, hint, message: problem.sentence() }
    }

    /// Returns the event for a merge.
    pub fn merged(merged: &Merged) -> EngineEvent<'a> {
        let Merged { experiments, copied, present, missing } = *merged;
        EngineEvent::Merged { experiments, copied, present, missing }
    }
}

/// Output of events, usable from any thread.
pub struct Output {
    writer: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    /// Returns an output that writes events to `writer`.
    pub fn new(writer: impl Write + Send + 'static) -> Output {
        Output { writer: Mutex::new(Box::new(writer)) }
    }

    /// Writes and flushes an event.
    ///
    /// # Errors
    /// If the writer fails, for example because the reader has closed the pipe.
    pub fn emit(&self, event: &EngineEvent<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        let mut writer = self.writer.lock().expect("no thread panics while it writes an event");
        writer.write_all(&line)?;
        writer.flush()
    }
}

/// Converts a duration to seconds, rounded down to milliseconds, as in the `seconds` of events.
pub fn seconds(duration: std::time::Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}
