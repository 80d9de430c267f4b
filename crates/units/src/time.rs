//! Instants and spans of time, in whole nanoseconds.

use crate::parse::{self, ParseError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// An instant: nanoseconds since an origin, such as the start of the experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A duration in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// The maximum, later than every event.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the span since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns the whole microseconds since the origin, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);
    /// The maximum, longer than every real span.
    pub const MAX: Span = Span(u64::MAX);

    /// Returns a span of whole microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us.saturating_mul(1_000))
    }

    /// Returns a span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// Returns a span of whole seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }

    /// Returns the whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the span in seconds, for floating-point formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the span times `numerator / denominator`, rounded down.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn scale(self, numerator: u64, denominator: u64) -> Span {
        let scaled = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Span(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Returns the difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

/// Names of units, and their values in nanoseconds.
const UNITS: &[(&str, u64)] =
    &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

impl FromStr for Span {
    type Err = ParseError;

    /// Parses texts such as `"45ms"`, `"0.5s"`, `"100us"`, `"20ns"` or `"2min"`.
    fn from_str(text: &str) -> Result<Span, ParseError> {
        parse::quantity(text, UNITS, "a time with its unit, such as \"45ms\" or \"1.5s\"").map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(out, self.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(out)
    }
}
