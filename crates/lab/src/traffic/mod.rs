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
//! The kernel's timestamps determine when a transfer ends (see [`socket`]). A late loop opens connections late, which
//! it measures. This lengthens only the completion times of messages of applications, which begin when they are due.

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
/// `unknown-cc` and `cc-not-allowed`; `not-paced` if the kernel cannot pace a connection; `mixed-ecn` if the host
/// receives from dctcp and from other flows with ECN; `too-many-connections` if descriptors run out, `no-ports` if
/// local ports run out; `cannot-connect` if there is no route to the other end; `cannot-listen` if a port is in use;
/// `no-inet-diag`, `no-background`, `no-resources`, `no-timer` or `no-events` if the kernel refuses another service;
/// `bad-command` if a command other than `start` arrives first.
pub fn play(stage: &Stage<'_>, experiment: &Experiment, part: &Part) -> Result<HostReport, Error> {
    // A host that sends nothing receives in the loop that handles commands.
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
