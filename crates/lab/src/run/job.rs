//! An experiment to run and its outcome, the same for every engine.

use crate::error::Error;
use crate::protocol::HostEvent;
use crate::session::Session;
use crate::vm::Guests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_units::Span;

/// An experiment that is to be run.
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Id.
    pub id: &'a str,
    /// The plan's capacity traces.
    pub traces: &'a Traces,
    /// Called at least every 50 ms: whether to stop.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Receives the commands that change the machine, in whole lines, for `commands.log`.
    pub log: &'a dyn Fn(&str),
    /// File for captured packets; `None`: the experiment does not request them.
    pub capture: Option<&'a Path>,
    /// Folder for the output of programs; `None`: the experiment has none.
    pub programs: Option<&'a Path>,
    /// Programs of the user's that run on the path and end the experiment.
    pub session: Option<Session<'a>>,
}

/// The programs that run the hosts of an experiment on a real kernel.
#[derive(Clone, Copy)]
pub struct HostSetup<'a> {
    /// The program whose subcommand `host` runs a host: this one.
    pub engine: &'a Path,
    /// Whether programs take no time here: then timers are exact, and no path is too fast.
    pub is_virtual_time: bool,
    /// The guests that run the senders; `None`: senders run in the namespaces.
    pub guests: Option<&'a Guests>,
}

/// Results in addition to the tables, except counters in the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// Duration of the experiment on its own clock: from the start to the end of the last flow, or of the experiment's
    /// duration.
    pub lasted: Span,
    /// The engine's measurements of itself, by names that include their units. Values of several hosts are added,
    /// except times, of which the maximum counts.
    pub measured: BTreeMap<String, f64>,
    /// Reasons why the experiment is untrustworthy; empty if the engine has found none.
    pub untrustworthy: Vec<String>,
}

/// Takes a host's event; returns events that are not rows.
pub type Take<'a> = dyn FnMut(HostEvent) -> Result<(), HostEvent> + 'a;

/// Results in addition to the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
    /// The rest.
    pub performance: Performance,
}

/// Reasons for the lack of usable tables.
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
