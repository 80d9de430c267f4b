//! Services for the role of a host process: commands, events, and the start of the experiment.

mod commands;
mod event_writer;

pub use commands::CommandQueue;
pub use event_writer::EventWriter;

use crate::clock::{Clock, monotonic_ns};
use crate::error::Error;
use crate::protocol::{Command, HostEvent};
use std::collections::BTreeMap;

/// The services.
pub struct Stage<'a> {
    /// Incoming commands.
    pub commands: &'a CommandQueue,
    /// Outgoing events.
    pub events: &'a EventWriter,
    /// Returns the event that reports the host's configuration.
    pub(crate) configured: &'a dyn Fn() -> HostEvent,
}

/// Report of a host at its end, in addition to rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReport {
    /// The host's measurements of itself, by name.
    pub measured: BTreeMap<String, f64>,
    /// Reasons why the results are untrustworthy.
    pub untrustworthy: Vec<String>,
}

impl HostReport {
    /// Adds the report of another host. Values are summed, except times, clock errors and CPU shares, whose maximum is
    /// kept.
    pub(crate) fn add(&mut self, other: HostReport) {
        for (name, value) in other.measured {
            let takes_largest = name.ends_with("_us") || name.ends_with("_ppm") || name.contains("cpu_share");
            let join = |total: &mut f64| *total = if takes_largest { total.max(value) } else { *total + value };
            self.measured.entry(name).and_modify(join).or_insert(value);
        }
        for reason in other.untrustworthy {
            if !self.untrustworthy.contains(&reason) {
                self.untrustworthy.push(reason);
            }
        }
    }
}

impl Stage<'_> {
    /// Reports that the host is prepared, waits for the start, and returns the experiment's clock. Its time zero may be
    /// in the future; until then the clock shows zero.
    ///
    /// # Errors
    /// `bad-command`: a command other than `start` and `clock` arrived.
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

/// Returns the event with the current reading of this machine's clock.
pub(crate) fn clock_event() -> HostEvent {
    HostEvent::Clock { monotonic_ns: monotonic_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_counts_are_summed_times_are_maximised_and_reasons_are_deduplicated() {
        let of = |measured: &[(&str, f64)], reasons: &[&str]| HostReport {
            measured: measured.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            untrustworthy: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        };
        let mut report = HostReport::default();
        report.add(of(&[("start_lateness_p99_us", 20.0), ("connections_failed", 1.0)], &["late"]));
        report.add(of(&[("start_lateness_p99_us", 10.0), ("connections_failed", 2.0)], &["late", "dropped"]));
        report.add(of(&[("relay_lateness_p99_us", 5.0)], &[]));
        let expected = [("connections_failed", 3.0), ("relay_lateness_p99_us", 5.0), ("start_lateness_p99_us", 20.0)];
        assert_eq!(report, of(&expected, &["late", "dropped"]));
    }
}
