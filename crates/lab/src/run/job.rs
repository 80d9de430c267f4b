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
    /// Its id.
    pub id: &'a str,
    /// The plan's capacity traces.
    pub traces: &'a Traces,
    /// Asked at least every 50 ms: whether to stop.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Takes what is done to the machine, in whole lines, for `commands.log`.
    pub log: &'a dyn Fn(&str),
    /// Where recorded packets are to be captured; nothing: the experiment does not ask for it.
    pub capture: Option<&'a Path>,
    /// Where programs that make flows write to; nothing: the experiment has none.
    pub programs: Option<&'a Path>,
    /// Programs of the user's that run on the path and end the experiment.
    pub session: Option<Session<'a>>,
}

/// What the hosts of an experiment on a real kernel are played by.
#[derive(Clone, Copy)]
pub struct HostSetup<'a> {
    /// The program whose subcommand `host` plays a host: this one.
    pub engine: &'a Path,
    /// Whether programs take no time here: then timers are exact, and no path is too fast.
    pub is_virtual_time: bool,
    /// The guests that play senders; nothing: senders live in the namespaces themselves.
    pub guests: Option<&'a Guests>,
}

/// What came out besides the tables, but for what is counted in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// How long the experiment took on its own clock: from the start to the end of the last flow, or of the
    /// experiment's duration.
    pub lasted: Span,
    /// What the engine measured of itself, by names that carry their units. What several hosts have is added up, but
    /// for times, of which the longest counts.
    pub measured: BTreeMap<String, f64>,
    /// Why the experiment should not be believed; nothing if the engine has found no reason.
    pub untrustworthy: Vec<String>,
}

/// Takes a host's report; returns events that are not rows.
pub type Take<'a> = dyn FnMut(HostEvent) -> Result<(), HostEvent> + 'a;

/// What came out besides the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
    /// The rest.
    pub performance: Performance,
}

/// Why there are no tables to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// `is_cancelled` said so.
    Cancelled,
    /// Something went wrong.
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Failed(error)
    }
}
