//! Runs one experiment on this machine's kernel, from its plan to rows.
//!
//! ```text
//!  check ─► choose a link ─► speed ─► network ─► hosts: configure … start … over … stop ─► rows ─► removal
//!  unsupported requests       the machine's rate          commands and events of the module protocol
//! ```
//!
//! Hosts exit and the network is removed when the pipes to them close, even if the engine is killed.

mod accompany;
mod act;
mod check;
mod guest;
mod host_processes;
mod job;
mod network;
mod program_rows;
mod programs;
mod qlog;
mod rows;
mod script;
mod speed;

pub(crate) use act::SESSION_PORT;
pub use job::{Failure, HostSetup, Job, Outcome, Performance, Take};
pub use rows::Rows;

use crate::error::Error;
use crate::net;
use crate::relay::capture;
use std::io;
use std::path::Path;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;

/// Runs an experiment, and passes its rows to `sink`.
///
/// # Errors
/// If the machine cannot run the experiment, a host fails, the capture cannot be read, or the user requested a stop.
/// The rows handed over until then are incomplete.
pub fn run(job: &Job<'_>, setup: HostSetup<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
    let mut rows = Rows::new(job.experiment, sink);
    let performance = perform(job, setup, &mut |event| rows.take(event))?;
    if let Some(capture) = job.capture {
        capture::read(capture, &mut |packet| rows.packet(packet)).map_err(|error| unreadable(capture, &error))?;
    }
    let logs = job.programs.map(|folder| (job.experiment, folder));
    Ok(Outcome { packets: rows.finish(&performance.untrustworthy, logs), performance })
}

/// Checks whether this machine can run an experiment; returns the kind of its links with the reason as text.
///
/// # Errors
/// If the experiment is inconsistent, or the machine cannot run it.
pub fn check(experiment: &Experiment, traces: &Traces, setup: HostSetup<'_>) -> Result<(net::LinkKind, String), Error> {
    check::check_hosts(experiment, setup)?;
    if setup.is_virtual_time {
        net::choose_link_in_virtual_time(experiment, traces, &net::probe::qdiscs()?)
    } else {
        net::choose_link(experiment, traces)
    }
}

/// Runs an experiment, and passes the events of its hosts to `take`.
///
/// # Errors
/// Those of [`run`].
pub fn perform(job: &Job<'_>, setup: HostSetup<'_>, take: &mut Take<'_>) -> Result<Performance, Failure> {
    check::check_job(job)?;
    let (link, why) = check(job.experiment, job.traces, setup)?;
    if !setup.is_virtual_time {
        speed::check(job, setup, link)?;
    }
    let title =
        format!("experiment {}, repetition {}: {}", job.experiment.experiment, job.experiment.repetition, job.id);
    network::run_on(link, &why, &title, job, setup, take)
}

fn unreadable(capture: &Path, error: &io::Error) -> Error {
    let message = format!("the packets recorded in {} cannot be read: {error}", capture.display());
    Error::new("no-packets", message, "check whether the disk is full: df -h")
}
