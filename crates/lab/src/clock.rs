//! The clock of an experiment: the machine's monotonic clock, counted from the experiment's start.

use rustix::time::{ClockId, Timespec, clock_gettime};
use thalweg_units::Time;

/// Start of an experiment on CLOCK_MONOTONIC, which all network namespaces of a machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Returns the clock of an experiment that starts at this reading of CLOCK_MONOTONIC.
    pub fn starting_at(start_ns: u64) -> Clock {
        Clock { start_ns }
    }

    /// Returns the clock of an experiment that starts now.
    pub fn starting_now() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// Returns the time since the start; zero before it.
    pub fn now(&self) -> Time {
        self.at(monotonic_ns())
    }

    /// Converts a reading of CLOCK_MONOTONIC.
    pub fn at(&self, monotonic_ns: u64) -> Time {
        Time(monotonic_ns.saturating_sub(self.start_ns))
    }

    /// Converts a time to a reading of CLOCK_MONOTONIC.
    pub fn monotonic_ns(&self, time: Time) -> u64 {
        self.start_ns.saturating_add(time.0)
    }
}

/// Reads CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Converts nanoseconds to the structure that system calls use.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}
