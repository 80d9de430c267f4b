//! Tests of prefixes and their tree.

use core::net::IpAddr;
use proptest::prelude::*;
use thalweg_policy::{Family, Prefix, Tree};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_address_belongs_to_the_destination_of_its_family() {
    let tree = Tree::default();
    assert_eq!(tree.leaf(address("192.0.2.7")).to_string(), "192.0.2.0/24");
    assert_eq!(tree.leaf(address("2001:db8:1:2::7")).to_string(), "2001:db8:1::/48");
}

#[test]
fn ipv4_mapped_addresses_are_ipv4() {
    assert_eq!(Tree::default().leaf(address("::ffff:192.0.2.7")).to_string(), "192.0.2.0/24");
}

#[test]
fn a_destination_inherits_from_its_ancestors_starting_at_the_root() {
    let tree = Tree::default();
    let names = |leaf| tree.ancestors(tree.leaf(address(leaf))).map(|prefix| prefix.to_string()).collect::<Vec<_>>();
    assert_eq!(names("192.0.2.7"), ["0.0.0.0/0", "192.0.0.0/8", "192.0.0.0/16"]);
    assert_eq!(names("2001:db8::1"), ["::/0", "2001:db8::/32"]);
}

#[test]
fn configured_prefix_lengths_omit_longer_ancestors() {
    let tree = Tree::with_leaves(12, 64);
    let leaf = tree.leaf(address("172.20.3.4"));
    assert_eq!(leaf.to_string(), "172.16.0.0/12");
    assert_eq!(tree.ancestors(leaf).map(|prefix| prefix.length()).collect::<Vec<_>>(), [0, 8]);
    assert_eq!(tree.leaf(address("2001:db8:1:2::7")).to_string(), "2001:db8:1:2::/64");
}

#[test]
fn an_invalid_prefix_is_reported() {
    for (text, why) in [
        ("192.0.2.0", "it has no length"),
        ("192.0.2/24", "its address is malformed"),
        ("192.0.2.0/x", "its length is not a number from 0 to 128"),
        ("192.0.2.0/300", "its length is not a number from 0 to 128"),
        ("192.0.2.0/33", "its length exceeds the number of address bits"),
        ("192.0.2.1/24", "address bits beyond its length are set"),
        ("::ffff:192.0.2.0/120", "it is an IPv4 address written as IPv6; write it as IPv4"),
    ] {
        assert_eq!(text.parse::<Prefix>().unwrap_err().why, why, "{text}");
    }
}

proptest! {
    #[test]
    fn every_prefix_survives_formatting_and_parsing(bits: u128, length in 0u8..=128, is_v4: bool) {
        let address = if is_v4 { IpAddr::from((bits as u32).to_be_bytes()) } else { IpAddr::from(bits.to_be_bytes()) };
        let prefix = Prefix::of(address, length);
        prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
    }

    #[test]
    fn ancestors_contain_their_destination_and_each_other(bits: u128, is_v4: bool) {
        let address = if is_v4 { IpAddr::from((bits as u32).to_be_bytes()) } else { IpAddr::from(bits.to_be_bytes()) };
        let tree = Tree::default();
        let leaf = tree.leaf(address);
        let mut line: Vec<Prefix> = tree.ancestors(leaf).collect();
        line.push(leaf);
        prop_assert_eq!(line[0].length(), 0);
        prop_assert!(line.windows(2).all(|pair| pair[0].has(pair[1]) && !pair[1].has(pair[0])));
        prop_assert_eq!(leaf.length(), if leaf.family() == Family::V4 { 24 } else { 48 });
    }
}
