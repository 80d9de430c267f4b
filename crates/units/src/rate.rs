//! Rates in bits per second.

use crate::parse::{self, ParseError};
use crate::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rate in bits per second. `Mbps` is 10^6 bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rate(pub u64);

const NANOS: u128 = 1_000_000_000;

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Rate = Rate(0);

    /// Returns a rate of `mbps` times 10^6 bit/s.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps.saturating_mul(1_000_000))
    }

    /// Returns the time to send `size` at this rate, rounded up to the next nanosecond; [`Span::MAX`] at rate zero.
    pub fn time_to_send(self, size: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let nanos = (u128::from(size.0) * 8 * NANOS).div_ceil(u128::from(self.0));
        Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the bytes sent in `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / (8 * NANOS);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Returns the rate that carries `size` in `span`, rounded down; zero if `span` is zero.
    pub fn of(size: Bytes, span: Span) -> Rate {
        if span.0 == 0 {
            return Rate::ZERO;
        }
        let bps = u128::from(size.0) * 8 * NANOS / u128::from(span.0);
        Rate(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Returns the rate times `numerator / denominator`, rounded down.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn scale(self, numerator: u64, denominator: u64) -> Rate {
        let scaled = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Rate(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Parses texts such as `"40Mbps"`, `"2.5Gbps"`, `"64kbps"` or `"1000bps"`.
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        let units = &[("bps", 1), ("kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000)];
        parse::quantity(text, units, "a rate with its unit, such as \"40Mbps\" or \"1Gbps\"").map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(out, self.0, &[("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)])
    }
}
