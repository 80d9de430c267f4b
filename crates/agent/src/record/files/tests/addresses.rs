use super::super::{Addresses, Key};
use std::net::IpAddr;

fn text(addresses: &Addresses, address: &str) -> String {
    addresses.text(address.parse::<IpAddr>().expect("an address")).to_string()
}

#[test]
fn full_addresses_are_written_unchanged() {
    assert_eq!(text(&Addresses::Whole, "192.0.2.7"), "192.0.2.7");
    assert_eq!(text(&Addresses::Whole, "2001:db8:1:2::7"), "2001:db8:1:2::7");
    assert_eq!(text(&Addresses::Whole, "::ffff:192.0.2.7"), "192.0.2.7");
}

#[test]
fn truncated_addresses_keep_the_network_and_clear_the_host_bits() {
    assert_eq!(text(&Addresses::Truncated, "192.0.2.7"), "192.0.2.0/24");
    assert_eq!(text(&Addresses::Truncated, "::ffff:192.0.2.7"), "192.0.2.0/24");
    assert_eq!(text(&Addresses::Truncated, "2001:db8:1:2::7"), "2001:db8:1::/48");
    assert_eq!(text(&Addresses::Truncated, "::1"), "::/48");
}

#[test]
fn stored_addresses_are_equal_exactly_when_their_texts_are() {
    let key = Addresses::Hashed(Key::of(&[0; 32]));
    let all =
        ["192.0.2.7", "192.0.2.8", "::ffff:192.0.2.7", "198.51.100.7", "2001:db8:1:2::7", "2001:db8:1:3::7", "::1"];
    for addresses in [Addresses::Whole, Addresses::Truncated, key] {
        for (first, second) in all.iter().flat_map(|first| all.iter().map(move |second| (first, second))) {
            let kept = [first, second].map(|text| addresses.kept(text.parse().expect("an address")));
            assert_eq!(kept[0] == kept[1], text(&addresses, first) == text(&addresses, second), "{first} {second}");
        }
    }
}

/// The expected values were computed with Python's hmac and hashlib.
#[test]
fn hashed_addresses_are_the_first_64_bits_of_hmac_sha_256() {
    let key: Vec<u8> = (0..32).collect();
    let addresses = Addresses::Hashed(Key::of(&key));
    assert_eq!(text(&addresses, "192.0.2.7"), "h:49904e588c3b5db3");
    assert_eq!(text(&addresses, "::ffff:192.0.2.7"), "h:49904e588c3b5db3");
    assert_eq!(text(&addresses, "2001:db8:1:2::7"), "h:1f2c63afee8f065c");
    let other = Addresses::Hashed(Key::of(&[1; 32]));
    assert_ne!(text(&other, "192.0.2.7"), text(&addresses, "192.0.2.7"));
}

#[test]
fn peer_ports_are_recorded_only_with_full_addresses() {
    let hashed = Addresses::Hashed(Key::of(&[0; 32]));
    let kept = [&Addresses::Whole, &Addresses::Truncated, &hashed].map(Addresses::keep_remote_ports);
    assert_eq!(kept, [true, false, false]);
}
