//! An experiment that is to be run, and what comes of it.

use crate::error::Error;
use crate::protocol::HostEvent;
use crate::vm::Guests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_plan::plan::Experiment;
use thalweg_units::Span;

/// An experiment that is to be run.
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its id, for `commands.log`.
    pub id: &'a str,
    /// The plan's capacity traces.
    pub traces: &'a BTreeMap<String, Vec<u64>>,
    /// The program whose subcommand `host` plays a host: this one.
    pub engine: &'a Path,
    /// Asked at least every 50 ms: whether to stop.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Takes what is done to the machine, in whole lines.
    pub log: &'a dyn Fn(&str),
    /// Where recorded packets are to be captured; nothing: the experiment does not ask for it.
    pub capture: Option<&'a Path>,
    /// Whether programs take no time here: then timers are exact, and no path is too fast.
    pub is_virtual_time: bool,
    /// The guests that play senders; nothing: senders live in the namespaces themselves.
    pub guests: Option<&'a Guests>,
}

/// What an experiment leaves besides the reports of its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Performance {
    /// As in [`Outcome`].
    pub lasted: Span,
    /// As in [`Outcome`].
    pub measured: BTreeMap<String, f64>,
    /// As in [`Outcome`].
    pub untrustworthy: Vec<String>,
}

/// Takes what a host reports; gives back what is no report of a row.
pub type Take<'a> = dyn FnMut(HostEvent) -> Result<(), HostEvent> + 'a;

/// What came out besides the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the start to the end of the last flow, or of the experiment's duration.
    pub lasted: Span,
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
    /// What the hosts measured of themselves, by names that carry their units. What several hosts have is added up, but for
    /// times, of which the longest counts.
    pub measured: BTreeMap<String, f64>,
    /// Why the experiment should not be believed.
    pub untrustworthy: Vec<String>,
}

/// Why there are no rows to keep.
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
