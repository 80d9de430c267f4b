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
    /// The plan's traces and profiles.
    pub traces: &'a Traces,
    /// Returns whether to stop.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Receives the commands that change the machine, as complete lines for `commands.log`.
    pub log: &'a dyn Fn(&str),
    /// File for captured packets; `None` if packets are not captured.
    pub capture: Option<&'a Path>,
    /// Folder for the output of programs; `None` if the experiment has no programs.
    pub programs: Option<&'a Path>,
    /// Programs that the user runs on the path; `None` if the experiment is not a session.
    pub session: Option<Session<'a>>,
}

/// How the hosts of an experiment run on a real kernel.
#[derive(Clone, Copy)]
pub struct HostSetup<'a> {
    /// The program whose subcommand `host` runs a host: the engine.
    pub engine: &'a Path,
    /// Whether time is virtual, so that no path is too fast for the machine.
    pub is_virtual_time: bool,
    /// Guests that run the senders; `None` if senders run in the namespaces.
    pub guests: Option<&'a Guests>,
}

/// Results in addition to the tables and their counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// Duration of the experiment on its own clock.
    pub lasted: Span,
    /// The engine's measurements of itself, by name.
    pub measured: BTreeMap<String, f64>,
    /// Reasons why the experiment is untrustworthy; empty if the engine found none.
    pub untrustworthy: Vec<String>,
}

/// Processes a host's event; returns the event as error if it is unexpected.
pub type Take<'a> = dyn FnMut(HostEvent) -> Result<(), HostEvent> + 'a;

/// Results in addition to the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
    /// Other results.
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
