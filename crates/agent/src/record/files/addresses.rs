//! Formats recorded addresses: complete, truncated or hashed. docs/reference/records.md describes what each form hides.

use super::key::Key;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

/// The form of recorded addresses.
#[derive(Clone, Debug, PartialEq)]
pub enum Addresses {
    /// The complete address.
    Whole,
    /// The network: /24 of IPv4, /48 of IPv6.
    Truncated,
    /// The first 64 bits of HMAC-SHA-256 (RFC 2104) with this key.
    Hashed(Key),
}

impl Addresses {
    /// Returns the part of an address that determines its text. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn kept(&self, address: IpAddr) -> IpAddr {
        match (self, address.to_canonical()) {
            (Addresses::Truncated, IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
            }
            (Addresses::Truncated, IpAddr::V6(address)) => {
                let [a, b, c, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
            }
            (Addresses::Whole | Addresses::Hashed(_), address) => address,
        }
    }

    /// Formats an address.
    pub fn text(&self, address: IpAddr) -> Rc<str> {
        let text = match (self, self.kept(address)) {
            (Addresses::Whole, address) => address.to_string(),
            (Addresses::Truncated, IpAddr::V4(network)) => format!("{network}/24"),
            (Addresses::Truncated, IpAddr::V6(network)) => format!("{network}/48"),
            // The lengths 4 and 16 differ, so addresses of different families have different hashes.
            (Addresses::Hashed(key), IpAddr::V4(address)) => hashed(key, &address.octets()),
            (Addresses::Hashed(key), IpAddr::V6(address)) => hashed(key, &address.octets()),
        };
        Rc::from(text)
    }

    /// Returns whether the peer's port is recorded for connections that the peer may have opened. Port and time
    /// together may identify one customer behind a shared address.
    pub fn keep_remote_ports(&self) -> bool {
        matches!(self, Addresses::Whole)
    }
}

fn hashed(key: &Key, address: &[u8]) -> String {
    format!("h:{:016x}", key.hash(address))
}
