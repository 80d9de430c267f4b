//! What a host process provides to the role that it plays: commands, events, and the start of the experiment.

mod commands;
mod events;

pub use commands::Inbox;
pub use events::Outbox;

use crate::clock::{Clock, monotonic_ns};
use crate::error::Error;
use crate::protocol::{Command, Event};
use std::collections::BTreeMap;

/// What a role has to deal with.
pub struct Stage<'a> {
    /// Commands.
    pub inbox: &'a Inbox,
    /// Events.
    pub outbox: &'a Outbox,
    /// Returns the event that reports the host's configuration.
    pub(crate) configured: &'a dyn Fn() -> Event,
}

/// What a role leaves, besides rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// What it measured of itself, by names that carry their units.
    pub measured: BTreeMap<String, f64>,
    /// Why the experiment should not be believed.
    pub untrustworthy: Vec<String>,
}

impl Stage<'_> {
    /// Says that all is prepared, waits for the start, and gives the experiment's clock. Its time zero may lie a little
    /// ahead: until then it shows zero.
    ///
    /// # Errors
    /// Another command came.
    pub fn wait_for_start(&self) -> Result<Clock, Error> {
        self.outbox.tell(&(self.configured)());
        loop {
            match self.inbox.next() {
                Command::Start { at_monotonic_ns } => {
                    return Ok(at_monotonic_ns.map_or_else(Clock::starting_now, Clock::starting_at));
                }
                Command::Clock => self.outbox.tell(&clock_event()),
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
pub(crate) fn clock_event() -> Event {
    Event::Clock { monotonic_ns: monotonic_ns() }
}
