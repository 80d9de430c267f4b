//! Sizes in bytes and counts of packets.

use crate::parse::{self, ParseError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A size in bytes. `MB` is 10^6 bytes, `MiB` is 2^20.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A number of packets (for TCP: of segments, the unit of Linux's congestion window).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Packets(pub u64);

macro_rules! counts {
    ($name:ident) => {
        impl $name {
            /// Zero.
            pub const ZERO: $name = $name(0);
            /// The maximum, above every real value.
            pub const MAX: $name = $name(u64::MAX);

            /// Returns the difference, or zero if `other` is larger.
            pub const fn saturating_sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                *self = *self + other;
            }
        }

        /// Subtraction without saturation: an underflow is a bug, and panics in debug builds.
        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: $name) {
                *self = *self - other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(iter: I) -> $name {
                iter.fold($name::ZERO, Add::add)
            }
        }
    };
}

counts!(Bytes);
counts!(Packets);

impl FromStr for Bytes {
    type Err = ParseError;

    /// Parses texts such as `"30MB"`, `"100kB"`, `"1.5MiB"` or `"1500B"`.
    fn from_str(text: &str) -> Result<Bytes, ParseError> {
        let units = &[
            ("B", 1),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        parse::quantity(text, units, "a size with its unit, such as \"100kB\" or \"4MiB\"").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(out, self.0, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)])
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}packets", self.0)
    }
}
