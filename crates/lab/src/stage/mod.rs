//! What a host process provides to the role that it plays: commands, events, and the start of the experiment.

mod commands;
mod event_writer;

pub use commands::CommandQueue;
pub use event_writer::EventWriter;

use crate::clock::{Clock, monotonic_ns};
use crate::error::Error;
use crate::protocol::{Command, HostEvent};
use std::collections::BTreeMap;

/// The commands and events of a host process, as its role uses them.
pub struct Stage<'a> {
    /// Commands.
    pub commands: &'a CommandQueue,
    /// Events.
    pub events: &'a EventWriter,
    /// Returns the event that reports the host's configuration.
    pub(crate) configured: &'a dyn Fn() -> HostEvent,
}

/// What a role reports at its end, besides rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// What it measured of itself, by names that carry their units.
    pub measured: BTreeMap<String, f64>,
    /// Why the results are not trustworthy.
    pub untrustworthy: Vec<String>,
}

impl Stage<'_> {
    /// Reports that the host is prepared, waits for the start, and returns the experiment's clock. Its time zero may be
    /// some milliseconds ahead; until then the clock shows zero.
    ///
    /// # Errors
    /// `bad-command`: another command arrived.
    pub fn wait_for_start(&self) -> Result<Clock, Error> {
        self.events.send(&(self.configured)());
        loop {
            match self.commands.next() {
                Command::Start { at_monotonic_ns } => {
                    return Ok(at_monotonic_ns.map_or_else(Clock::starting_now, Clock::starting_at));
                }
                Command::Clock => self.events.send(&clock_event()),
                other => {
                    return Err(Error::new(
                        "bad-command",
                        format!("expected `start`, found {other:?}"),
                        "see docs/reference/host-protocol.md",
                    ));
                }
            }
        }
    }
}

/// Returns the event with the present reading of this machine's clock.
pub(crate) fn clock_event() -> HostEvent {
    HostEvent::Clock { monotonic_ns: monotonic_ns() }
}
