//! Destination prefixes, and the tree that they form.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Version 4.
    V4,
    /// Version 6.
    V6,
}

impl Family {
    /// Returns the number of bits of an address.
    pub const fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

/// A range of addresses with the same leading bits, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    family: Family,
    /// The address, aligned to the highest bit; bits after `length` are zero.
    bits: u128,
    length: u8,
}

impl Prefix {
    /// Returns the prefix of the first `length` bits of `address`, or of all bits if it has fewer. An IPv4-mapped IPv6
    /// address (`::ffff:192.0.2.7`) counts as IPv4.
    pub fn of(address: IpAddr, length: u8) -> Prefix {
        let (family, bits) = match address.to_canonical() {
            IpAddr::V4(v4) => (Family::V4, u128::from(v4.to_bits()) << 96),
            IpAddr::V6(v6) => (Family::V6, v6.to_bits()),
        };
        Prefix { family, bits, length: family.bits() }.cut(length)
    }

    /// Returns the IP version.
    pub const fn family(self) -> Family {
        self.family
    }

    /// Returns the number of bits that the addresses share.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Returns the prefix shortened to `length`; unchanged if it is not longer.
    pub const fn cut(self, length: u8) -> Prefix {
        if length >= self.length {
            return self;
        }
        let mask = if length == 0 { 0 } else { u128::MAX << (128 - length as u32) };
        Prefix { family: self.family, bits: self.bits & mask, length }
    }

    /// Whether the prefix contains all of `other`.
    pub fn has(self, other: Prefix) -> bool {
        self.family == other.family && self.length <= other.length && other.cut(self.length) == self
    }

    /// Returns the first address.
    pub fn address(self) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits((self.bits >> 96) as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(self.bits).into(),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address(), self.length)
    }
}

/// A malformed prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a prefix: {why}; expected for example 192.0.2.0/24 or 2001:db8::/48")]
pub struct PrefixError {
    /// The malformed text.
    pub found: String,
    /// The error.
    pub why: &'static str,
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let error = |why| PrefixError { found: text.to_owned(), why };
        let (address, length) = text.split_once('/').ok_or_else(|| error("it has no length"))?;
        let address: IpAddr = address.parse().map_err(|_| error("its address is malformed"))?;
        let length: u8 = length.parse().map_err(|_| error("its length is not a number from 0 to 128"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if length > bits {
            return Err(error("its length exceeds the number of address bits"));
        }
        let host = Prefix::of(address, u8::MAX);
        if host.family.bits() != bits {
            return Err(error("it is an IPv4 address written as IPv6; write it as IPv4"));
        }
        let prefix = host.cut(length);
        if prefix.address() != address {
            return Err(error("address bits beyond its length are set"));
        }
        Ok(prefix)
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Prefix, PrefixError> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}

/// Prefix lengths in descending order: that of destinations, then those of the networks around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    v4: Vec<u8>,
    v6: Vec<u8>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { v4: vec![24, 16, 8, 0], v6: vec![48, 32, 0] }
    }
}

impl Tree {
    /// Creates a tree with destinations of these lengths; longer ones are limited to the length of an address.
    pub fn with_leaves(v4: u8, v6: u8) -> Tree {
        let shorter = |leaf: u8, levels: Vec<u8>, most: u8| {
            let leaf = leaf.min(most);
            std::iter::once(leaf).chain(levels.into_iter().filter(|&length| length < leaf)).collect()
        };
        let usual = Tree::default();
        Tree { v4: shorter(v4, usual.v4, 32), v6: shorter(v6, usual.v6, 128) }
    }

    /// Returns the destination of an address.
    pub fn leaf(&self, address: IpAddr) -> Prefix {
        self.leaf_of(Prefix::of(address, u8::MAX))
    }

    /// Returns the destination that contains a prefix. A prefix shorter than destinations is its own destination.
    pub fn leaf_of(&self, prefix: Prefix) -> Prefix {
        prefix.cut(self.lengths(prefix.family())[0])
    }

    /// Returns the networks around `leaf`, the largest first.
    pub fn ancestors(&self, leaf: Prefix) -> impl Iterator<Item = Prefix> {
        let shorter = self.lengths(leaf.family()).iter().rev().filter(move |&&length| length < leaf.length());
        shorter.map(move |&length| leaf.cut(length))
    }

    fn lengths(&self, family: Family) -> &[u8] {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }
}
