//! Linux's coarse clock: jiffies.
//!
//! Decisions that depend on it change only at ticks. The number of ticks per second (`HZ`) is set when a kernel is
//! built.

use std::ops::Add;
use thalweg_units::{Span, Time};

/// A reading of the coarse clock: ticks since some origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jiffies(pub u64);

impl Jiffies {
    /// Returns the number of ticks since `earlier`; zero if that is later.
    pub(crate) fn since(self, earlier: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Jiffies {
    type Output = Jiffies;
    fn add(self, other: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_add(other.0))
    }
}

/// Ticks of the coarse clock per second, from 100 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hz(pub u32);

impl Hz {
    /// 1000 ticks per second: a tick of one millisecond.
    pub const MILLISECOND_TICK: Hz = Hz(1000);

    /// Returns the tick at `time`, for a clock that starts at time 0.
    #[inline]
    pub fn at(self, time: Time) -> Jiffies {
        let (seconds, rest) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
        Jiffies(seconds * u64::from(self.0) + rest * u64::from(self.0) / 1_000_000_000)
    }

    /// Returns the number of ticks in `seconds`.
    pub(crate) fn seconds(self, seconds: u64) -> Jiffies {
        Jiffies(seconds * u64::from(self.0))
    }

    /// Returns the minimum number of ticks that last at least as long as `span`.
    pub(crate) fn covering(self, span: Span) -> Jiffies {
        // The product is below 2^64, since a span is less than 2^64 / 1000 microseconds.
        Jiffies((span.as_micros() * u64::from(self.0)).div_ceil(1_000_000))
    }
}
