//! Addresses whose connections are left alone without `--private` or an override: the same ranges as in
//! `bpf/include/tune_choice.h`.

use crate::flow::reason::Reason;
use thalweg_policy::Prefix;

const RANGES: [(&str, Reason, &str); 10] = [
    ("0.0.0.0/8", Reason::Loopback, "this host, RFC 1122"),
    ("10.0.0.0/8", Reason::Private, "private, RFC 1918"),
    ("100.64.0.0/10", Reason::Private, "shared address space behind a carrier's NAT, RFC 6598"),
    ("127.0.0.0/8", Reason::Loopback, "loopback, RFC 1122"),
    ("169.254.0.0/16", Reason::LinkLocal, "link-local, RFC 3927"),
    ("172.16.0.0/12", Reason::Private, "private, RFC 1918"),
    ("192.168.0.0/16", Reason::Private, "private, RFC 1918"),
    ("::/127", Reason::Loopback, "loopback, RFC 4291"),
    ("fc00::/7", Reason::Private, "unique local, RFC 4193"),
    ("fe80::/10", Reason::LinkLocal, "link-local, RFC 4291"),
];

/// A range of excluded addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The addresses.
    pub prefix: Prefix,
    /// Reason for the exclusion.
    pub reason: Reason,
    /// Description, with the RFC.
    pub what: &'static str,
}

fn ranges() -> impl Iterator<Item = Range> {
    let range =
        |(prefix, reason, what): (&str, _, _)| Range { prefix: prefix.parse().expect("a prefix"), reason, what };
    RANGES.into_iter().map(range)
}

/// Returns the range that contains all addresses of a prefix.
pub fn range_around(prefix: Prefix) -> Option<Range> {
    ranges().find(|range| range.prefix.has(prefix))
}

/// Returns the ranges within a prefix that are smaller than it.
pub fn ranges_within(prefix: Prefix) -> impl Iterator<Item = Range> {
    ranges().filter(move |range| prefix != range.prefix && prefix.has(range.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    const HEADER: &str = include_str!("../../../../bpf/include/tune_choice.h");

    /// Parses the `RANGE`s of a list in the header.
    fn listed(list: &str) -> Vec<(Prefix, String)> {
        let (_, body) = HEADER.split_once(&format!("#define {list}(RANGE)")).expect("the list");
        let (body, _) = body.split_once("\n\n").expect("its end");
        let number = |text: &str| match text.trim().strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("a number"),
            None => text.trim().parse().expect("a number"),
        };
        let range = |part: &str| {
            let (arguments, _) = part.split_once(')').expect("its end");
            let arguments: Vec<&str> = arguments.split(',').collect();
            let (address, bits, reason) = match arguments[..] {
                [first, bits, reason] => (IpAddr::V4(Ipv4Addr::from_bits(number(first) as u32)), bits, reason),
                [first, last, bits, reason] => {
                    let address = u128::from(number(first)) << 64 | u128::from(number(last));
                    (IpAddr::V6(Ipv6Addr::from_bits(address)), bits, reason)
                }
                _ => panic!("{part}"),
            };
            let reason = reason.trim().strip_prefix("RECORD_").expect("a reason").to_lowercase();
            (Prefix::of(address, number(bits) as u8), reason)
        };
        body.split("RANGE(").skip(1).map(range).collect()
    }

    #[test]
    fn address_ranges_match_the_c_header() {
        let listed: Vec<_> = ["TUNE_RANGES_V4", "TUNE_RANGES_V6"].into_iter().flat_map(listed).collect();
        let mirrored = ranges().map(|range| (range.prefix, range.reason.name().to_owned()));
        assert_eq!(listed, mirrored.collect::<Vec<_>>());
    }

    #[test]
    fn a_prefix_is_in_a_range_only_if_the_range_covers_it_completely() {
        let reason = |text: &str| {
            let prefix =
                text.parse::<IpAddr>().map_or_else(|_| text.parse().unwrap(), |address| Prefix::of(address, 128));
            range_around(prefix).map(|range| range.reason)
        };
        for (text, expected) in [
            ("10.9.9.9", Some(Reason::Private)),
            ("100.64.0.1", Some(Reason::Private)),
            ("100.128.0.1", None),
            ("172.31.255.255", Some(Reason::Private)),
            ("172.32.0.0", None),
            ("127.0.0.1", Some(Reason::Loopback)),
            ("169.254.1.1", Some(Reason::LinkLocal)),
            ("::1", Some(Reason::Loopback)),
            ("::2", None),
            ("fd00::1", Some(Reason::Private)),
            ("fe80::1", Some(Reason::LinkLocal)),
            ("::ffff:192.168.1.1", Some(Reason::Private)),
            ("2001:db8::1", None),
            ("10.9.0.0/16", Some(Reason::Private)),
            ("8.0.0.0/6", None),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
        let within: Vec<Prefix> = ranges_within("8.0.0.0/6".parse().unwrap()).map(|range| range.prefix).collect();
        assert_eq!(within, ["10.0.0.0/8".parse().unwrap()]);
    }
}
