//! Runs an experiment on a separate network, and removes the network.

use super::act::Play;
use super::job::{Failure, HostSetup, Job, Performance, Take};
use super::script;
use crate::error::Error;
use crate::net::{self, LinkKind, Network, Seat};
use thalweg_units::Span;

/// Runs an experiment on a separate network. `why` is the reason for the selected kind of link.
///
/// # Errors
/// If the network cannot be created or removed, a host or a session fails, or the user requested a stop.
pub fn run_on(
    link: LinkKind,
    why: &str,
    title: &str,
    job: &Job<'_>,
    setup: HostSetup<'_>,
    take: &mut Take<'_>,
) -> Result<Performance, Failure> {
    let slack = if setup.is_virtual_time { Span::ZERO } else { net::TIMER_SLACK };
    let seat = if setup.guests.is_some() { Seat::Guest } else { Seat::Namespace };
    let mut network = Network::build_with(job.experiment, job.traces, link, slack, seat)?;
    let outcome = Play::prepare(&mut network, link, job, setup);
    // Logged before the experiment, so that the log has the network's commands even if the experiment fails.
    (job.log)(&script::section(title, link, why, &network));
    let outcome = outcome.and_then(|play| match job.session {
        None => play.perform(job, take),
        Some(session) => play.accompany(&mut network, session, setup, take),
    });
    match (outcome, network.close()) {
        (outcome, Ok(())) => outcome,
        (Err(Failure::Failed(error)), Err(left)) => {
            let message = format!("{}; then, {}", error.message, left.message);
            Err(Error::new(&error.code, message, format!("{}; {}", error.hint, left.hint)).into())
        }
        (_, Err(left)) => Err(Error::new("leftovers", left.message, left.hint).into()),
    }
}
