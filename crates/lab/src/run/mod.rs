//! One experiment on this machine's kernel, from a plan's words to rows.
//!
//! ```text
//!  check ─► choose a link ─► speed ─► network ─► crew: configure … start … over … stop ─► rows ─► network gone
//!  what cannot be honoured    what the machine carries    the hosts, as the module protocol says
//! ```
//!
//! Whatever happens (an error, Ctrl-C, a bug), the hosts end and the network goes. A killed engine takes both with it:
//! hosts and network end when the pipes to them do.

mod act;
mod check;
mod crew;
mod guest;
mod rows;
mod script;
mod speed;

pub use rows::Rows;

use crate::error::Error;
use crate::net::{self, LinkKind, Network, Seat};
use crate::protocol::Event;
use crate::relay::capture;
use crate::vm::Guests;
use act::Play;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use thalweg_plan::plan::Experiment;
use thalweg_trace::Sink;
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
pub type Take<'a> = dyn FnMut(Event) -> Result<(), Event> + 'a;

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

/// Runs an experiment to its end, and makes rows of it.
///
/// # Errors
/// [`Failure::Failed`] if the machine cannot run it, and says what it lacks; [`Failure::Cancelled`] if `is_cancelled` said
/// so. The rows handed over until then are incomplete.
pub fn run(job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
    let mut rows = Rows::new(job.experiment, sink);
    let Performance { lasted, measured, untrustworthy } = perform(job, &mut |event| rows.take(event))?;
    if let Some(capture) = job.capture {
        capture::read(capture, &mut |packet| rows.packet(packet)).map_err(|error| unreadable(capture, &error))?;
    }
    let packets = rows.finish(&untrustworthy);
    Ok(Outcome { lasted, packets, measured, untrustworthy })
}

/// Runs an experiment to its end, and hands over what its hosts report.
///
/// # Errors
/// As [`run`].
pub fn perform(job: &Job<'_>, take: &mut Take<'_>) -> Result<Performance, Failure> {
    check::check(job)?;
    let (link, why) = if job.is_virtual_time {
        net::choose_link_in_virtual_time(job.experiment)?
    } else {
        net::choose_link(job.experiment)?
    };
    if !job.is_virtual_time {
        speed::check(job, link)?;
    }
    let title =
        format!("experiment {}, repetition {}: {}", job.experiment.experiment, job.experiment.repetition, job.id);
    run_on(link, &why, &title, job, take)
}

/// Runs an experiment on a network of its own.
fn run_on(link: LinkKind, why: &str, title: &str, job: &Job<'_>, take: &mut Take<'_>) -> Result<Performance, Failure> {
    let slack = if job.is_virtual_time { Span::ZERO } else { net::TIMER_SLACK };
    let seat = if job.guests.is_some() { Seat::Guest } else { Seat::Namespace };
    let mut network = Network::build_with(job.experiment, link, slack, seat)?;
    let outcome = Play::prepare(&mut network, link, job);
    // Before anything is sent, so that it is there whatever happens then.
    (job.log)(&script::section(title, link, why, &network));
    let outcome = outcome.and_then(|play| play.perform(job, take));
    match (outcome, network.close()) {
        (outcome, Ok(())) => outcome,
        (Err(Failure::Failed(error)), Err(left)) => {
            let message = format!("{}; then, {}", error.message, left.message);
            Err(Error::new(&error.code, message, format!("{}; {}", error.hint, left.hint)).into())
        }
        (_, Err(left)) => Err(Error::new("leftovers", left.message, left.hint).into()),
    }
}

fn unreadable(capture: &Path, error: &io::Error) -> Error {
    let message = format!("the packets recorded in {} cannot be read: {error}", capture.display());
    Error::new("no-packets", message, "look whether the disk is full: df -h")
}
