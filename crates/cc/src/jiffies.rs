//! Linux's coarse clock for long times: jiffies.
//!
//! CUBIC's curve, the 10 s of BBR's minimum round-trip time and the 200 ms of ProbeRTT are counted in it, and a
//! decision that depends on it changes only at ticks. The number of ticks per second (`HZ`) is set when a kernel is
//! built: 1000 and 250 are usual, user-mode Linux uses 100.

use std::ops::Add;
use thalweg_units::{Span, Time};

/// A reading of the coarse clock: ticks since some origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jiffies(pub u64);

impl Jiffies {
    /// Ticks since `earlier`; none if it is not earlier.
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

/// Ticks of the coarse clock in a second. At least 100, at most 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hz(pub u32);

impl Hz {
    /// A tick of one millisecond.
    pub const MILLISECOND_TICK: Hz = Hz(1000);

    /// The tick that `time` falls in, if the clock started with the experiment.
    #[inline]
    pub fn at(self, time: Time) -> Jiffies {
        let (seconds, rest) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
        Jiffies(seconds * u64::from(self.0) + rest * u64::from(self.0) / 1_000_000_000)
    }

    /// The number of ticks in `seconds`.
    pub(crate) fn seconds(self, seconds: u64) -> Jiffies {
        Jiffies(seconds * u64::from(self.0))
    }

    /// Minimum number of ticks that last as long as `span`.
    pub(crate) fn covering(self, span: Span) -> Jiffies {
        // Below 2^64, since a span is less than 2^64 / 1000 microseconds.
        Jiffies((span.as_micros() * u64::from(self.0)).div_ceil(1_000_000))
    }
}
