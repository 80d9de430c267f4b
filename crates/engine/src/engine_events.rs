//! Events that a command prints on standard output while it works: a JSON object per line.

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
    /// The work ahead.
    Plan {
        /// Requested experiments.
        experiments: usize,
        /// Those that were already complete.
        present: usize,
        /// Those that will be run.
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
        /// Duration on this machine.
        seconds: f64,
        /// Duration on its own clock.
        simulated_s: f64,
        /// Packets that passed the bottleneck.
        packets: u64,
        /// The engine's measurements of itself.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        measured: &'a BTreeMap<String, f64>,
    },
    /// An experiment is untrustworthy, for a reason.
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
    /// The user requested a stop before all was done.
    Interrupted,
    /// Every requested experiment was run or has failed.
    Done {
        /// Experiments completed now.
        finished: usize,
        /// Experiments that failed.
        failed: usize,
        /// Experiments that were complete before.
        present: usize,
        /// Duration.
        seconds: f64,
    },
    /// Run directories have been joined.
    Merged {
        /// Experiments of the plan.
        experiments: usize,
        /// Experiments that were copied now.
        copied: usize,
        /// Experiments that were complete before.
        present: usize,
        /// Experiments that are still to be run.
        missing: usize,
    },
    /// The command cannot continue.
    Error {
        /// Short name.
        code: &'a str,
        /// File, key or flag.
        place: &'a str,
        /// Actual state.
        found: &'a str,
        /// Expected state.
        expected: &'a str,
        /// Remedy.
        hint: &'a str,
        /// Description in a sentence.
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

/// Output of events, from any thread.
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
