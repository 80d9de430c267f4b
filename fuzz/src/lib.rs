//! Functions that run the engine's parsers on any bytes, and must neither panic nor hang.
//!
//! ```text
//!  cargo +nightly fuzz run plan fuzz/seeds/plan     searches for input that breaks it, guided by coverage
//!  cargo run -p thalweg-fuzz --bin plan -- FILE...  tries these files, on any toolchain
//!  cargo test -p thalweg-fuzz                       tries every file in seeds/, and damaged forms of them
//! ```
//!
//! Input that once broke a parser is kept in `seeds/`. The agent's parsers are private to its crate, so their fuzz
//! tests are in `crates/agent/src/fuzz.rs`. Python reads scenarios and imports, which are tested in
//! `tests/python/scenario/test_mutated_scenarios.py` and `tests/python/records/imports/test_import_anything.py`.

mod damage;
// A unit test, because cargo would link every fuzz target before it ran an integration test.
#[cfg(test)]
mod seeds;

pub use damage::damage;

use std::str::FromStr;
use std::sync::LazyLock;
use thalweg_lab::fuzzed;
use thalweg_lab::protocol;
use thalweg_plan::plan::Plan;
use thalweg_policy::Prefix;
use thalweg_policy::simulate::{Population, Table};
use thalweg_units::{Bytes, Rate, Span};

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// A parser, with the name of its target and of its folder in `seeds/`.
pub type Parser = (&'static str, fn(&[u8]));

/// All parsers.
pub const PARSERS: &[Parser] = &[
    ("plan", plan),
    ("host_protocol", host_protocol),
    ("netlink", netlink),
    ("elf", elf),
    ("kernel_image", kernel_image),
    ("capture", capture),
    ("population", population),
    ("outcomes", outcomes),
    ("prefixes", prefixes),
    ("units", units),
];

/// Parses a plan like `thalweg-engine run`. A valid plan is written and read back.
///
/// # Panics
/// If the written plan cannot be read or differs.
pub fn plan(bytes: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else { return };
    let written = serde_json::to_vec(&plan).expect("a plan is JSON");
    let again: Plan = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, plan);
}

/// Parses a line as a command to a host, and as a host's answer.
pub fn host_protocol(bytes: &[u8]) {
    let _ = serde_json::from_slice::<protocol::Command>(bytes);
    let _ = serde_json::from_slice::<protocol::HostEvent>(bytes);
}

/// Parses a datagram of the kernel about connections or queue disciplines.
pub fn netlink(bytes: &[u8]) {
    fuzzed::netlink(bytes);
}

/// Parses the ELF file of a program or library for a guest.
pub fn elf(bytes: &[u8]) {
    fuzzed::elf(bytes);
}

/// Parses the kernel image of a guest.
pub fn kernel_image(bytes: &[u8]) {
    fuzzed::kernel_image(bytes);
}

/// Parses a packet capture (pcapng).
pub fn capture(bytes: &[u8]) {
    fuzzed::capture(bytes);
}

/// Parses a population of paths, as `policy simulate` reads it.
pub fn population(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Population::parse(text);
    }
}

/// Parses outcomes of connections on a population of paths, as `policy simulate` reads them.
///
/// # Panics
/// If the population in the repository is malformed.
pub fn outcomes(bytes: &[u8]) {
    static FROZEN: LazyLock<Population> = LazyLock::new(|| {
        Population::parse(include_str!("../../crates/policy/data/population.json")).expect("it is whole")
    });
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Table::parse(text, &FROZEN);
    }
}

/// Parses networks, one per line. A valid network is written and read back.
///
/// # Panics
/// If the written network cannot be read or differs.
pub fn prefixes(bytes: &[u8]) {
    std::str::from_utf8(bytes).unwrap_or_default().lines().for_each(round_trip::<Prefix>);
}

/// Parses quantities with a unit, one per line. A valid quantity is written and read back.
///
/// # Panics
/// If the written quantity cannot be read or differs.
pub fn units(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for line in text.lines() {
        round_trip::<Span>(line);
        round_trip::<Bytes>(line);
        round_trip::<Rate>(line);
    }
}

fn round_trip<T: FromStr + ToString + PartialEq>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    assert!(
        value.to_string().parse::<T>().is_ok_and(|again| again == value),
        "{text} is written as {}",
        value.to_string()
    );
}

/// Main function of a target: libFuzzer's under cargo-fuzz, otherwise one that runs the parser on the given files.
#[macro_export]
macro_rules! target {
    ($parser:path) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $parser(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            std::env::args_os().skip(1).try_for_each(|file| std::fs::read(file).map(|bytes| $parser(&bytes)))
        }
    };
}
