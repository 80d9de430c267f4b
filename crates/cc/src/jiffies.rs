//! The coarse clock by which Linux times what takes long: jiffies, here of one millisecond (`HZ = 1000`).
//!
//! CUBIC's curve, the 10 s of BBR's minimum round-trip time and the 200 ms of ProbeRTT are counted in it, and a decision
//! that depends on it changes only from one tick to the next.

use std::ops::Add;
use thalweg_units::{Span, Time};

/// A tick of the coarse clock: whole milliseconds since the start, rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Jiffies(pub u64);

impl Jiffies {
    /// The tick that `time` falls in.
    pub fn at(time: Time) -> Jiffies {
        Jiffies(time.0 / 1_000_000)
    }

    /// Ticks since `earlier`; none if it is not earlier.
    pub fn since(self, earlier: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_sub(earlier.0))
    }

    /// The fewest ticks that last as long as `span`.
    pub fn covering(span: Span) -> Jiffies {
        Jiffies(span.as_micros().div_ceil(1_000))
    }
}

impl Add for Jiffies {
    type Output = Jiffies;
    fn add(self, other: Jiffies) -> Jiffies {
        Jiffies(self.0.saturating_add(other.0))
    }
}
