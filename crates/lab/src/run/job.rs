//! An experiment and its outcome, in the form that all engines share.

use crate::error::Error;
use crate::protocol::HostEvent;
use crate::session::Session;
use crate::vm::Guests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_units::Span;

/// An experiment to run.
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Id of the experiment.
    pub id: &'a str,
    /// The plan's capacity traces.
    pub traces: &'a Traces,
    /// Returns whether to stop; called every 50 ms while the engine waits for hosts, but not once a session's command
    /// runs.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Receives the commands that change the machine as complete lines, for `commands.log`.
    pub log: &'a dyn Fn(&str),
    /// File for captured packets; `None` if the experiment does not request them.
    pub capture: Option<&'a Path>,
    /// Folder for the output of programs; `None` if the experiment has no programs.
    pub programs: Option<&'a Path>,
    /// Programs of the user that run on the path, and whose exit ends the experiment.
    pub session: Option<Session<'a>>,
}

/// How the hosts of an experiment run on a real kernel.
#[derive(Clone, Copy)]
pub struct HostSetup<'a> {
    /// The program whose subcommand `host` runs a host: the engine.
    pub engine: &'a Path,
    /// Whether time is virtual, so that programs take no time, timers are exact, and no path is too fast.
    pub is_virtual_time: bool,
    /// Guests that run the senders; `None` if senders run in the namespaces.
    pub guests: Option<&'a Guests>,
}

/// Results in addition to the tables and their counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// Duration of the experiment on its own clock: from the start to the end of the last flow, of the experiment's
    /// duration, or of a session's command.
    pub lasted: Span,
    /// The engine's measurements of itself, by names that include their units. Values of several hosts are added,
    /// except times, clock errors and CPU shares, for which the maximum is reported.
    pub measured: BTreeMap<String, f64>,
    /// Reasons why the experiment is untrustworthy; empty if the engine found none.
    pub untrustworthy: Vec<String>,
}

/// Receives a host's event; returns events that are not rows.
pub type Take<'a> = dyn FnMut(HostEvent) -> Result<(), HostEvent> + 'a;

/// Results in addition to the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
    /// All other results.
    pub performance: Performance,
}

/// Reason why there are no usable tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// `is_cancelled` returned true.
    Cancelled,
    /// An error.
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Failed(error)
    }
}
