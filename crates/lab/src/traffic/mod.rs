//! Traffic of real hosts: the flows and the background of a scenario on a kernel's own TCP.
//!
//! ```text
//!  host that sends                                                    host that receives (both, if flows go up)
//!  generator: one loop, all connections ── socket ──►                 receiver: reads and discards
//!     Agenda: connection starts   (of thalweg_traffic, as in the simulator)
//!     timers, account
//!  rows, built at the end
//!  in separate threads:
//!     sampling: one dump of all sockets at every instant
//!     background: UDP                                        ──►
//! ```
//!
//! The kernel's timestamps determine when a transfer ends, so a late loop does not change that time; the exceptions are
//! in [`socket::connection`].

mod background;
mod beside;
mod generator;
mod part;
mod receiver;
mod rows;
mod sampling;
mod socket;
mod stop_signal;
mod sys;
mod timers;

pub use part::Part;

use crate::error::Error;
use crate::stage::{HostReport, Stage};
use thalweg_plan::plan::Experiment;

/// Runs a host at an end of the path. A receiving host is ready once it listens.
///
/// # Errors
/// If the kernel cannot run the flows as the experiment requests, a descriptor, port or thread is unavailable, or the
/// host receives a command other than `start` or `clock` first.
pub fn play(stage: &Stage<'_>, experiment: &Experiment, part: &Part) -> Result<HostReport, Error> {
    // A host that sends nothing receives in the main thread.
    if part.flows.is_empty() && part.background.is_none() && part.receives.is_some() {
        return receiver::play(stage, experiment, part);
    }
    let receiving = part.receives.as_ref().map(|_| receiver::Receiving::start(experiment, part)).transpose()?;
    let mut stopped = generator::play(stage, experiment, part)?;
    if let Some(receiving) = receiving {
        stopped.measured.extend(receiving.finish()?);
    }
    Ok(stopped)
}
