//! One function for each parser of the engine: it takes any bytes, and must neither panic nor hang.
//!
//! ```text
//!  cargo +nightly fuzz run plan fuzz/seeds/plan     searches for input that breaks it, guided by coverage
//!  cargo run -p thalweg-fuzz --bin plan -- FILE...  tries these files, on any toolchain
//!  cargo test -p thalweg-fuzz                       tries every file in seeds/, and damaged forms of each
//! ```
//!
//! Input that once broke a parser is kept in `seeds/`. The agent's parsers are private to its program: their drivers
//! are in `crates/agent/src/fuzz.rs`. Python reads scenarios and imports:
//! `tests/python/scenario/test_mutated_scenarios.py` and `tests/python/records/imports/test_import_anything.py`.

mod damage;
// Not in tests/: cargo links every target before it runs a test there.
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

/// A parser, by the name of its target and of its folder in `seeds/`.
pub type Parser = (&'static str, fn(&[u8]));

/// All of them.
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

/// A plan, as `thalweg-engine run` reads it; a plan that can be read is written, and reads back as the same plan.
///
/// # Panics
/// The written plan differs.
pub fn plan(bytes: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else { return };
    let written = serde_json::to_vec(&plan).expect("a plan is JSON");
    let again: Plan = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, plan);
}

/// A line that a host reads, or that it answers.
pub fn host_protocol(bytes: &[u8]) {
    let _ = serde_json::from_slice::<protocol::Command>(bytes);
    let _ = serde_json::from_slice::<protocol::HostEvent>(bytes);
}

/// A datagram of the kernel about connections or queue disciplines.
pub fn netlink(bytes: &[u8]) {
    fuzzed::netlink(bytes);
}

/// A program or a library for a guest.
pub fn elf(bytes: &[u8]) {
    fuzzed::elf(bytes);
}

/// A kernel for guests.
pub fn kernel_image(bytes: &[u8]) {
    fuzzed::kernel_image(bytes);
}

/// A capture of packets (pcapng).
pub fn capture(bytes: &[u8]) {
    fuzzed::capture(bytes);
}

/// The paths that `policy simulate` plays on.
pub fn population(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Population::parse(text);
    }
}

/// Outcomes of connections on these paths, as `policy simulate` reads them.
///
/// # Panics
/// The population of the project is damaged.
pub fn outcomes(bytes: &[u8]) {
    static FROZEN: LazyLock<Population> = LazyLock::new(|| {
        Population::parse(include_str!("../../crates/policy/data/population.json")).expect("it is whole")
    });
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Table::parse(text, &FROZEN);
    }
}

/// Networks, one a line; a valid one is written, and reads back as the same network.
///
/// # Panics
/// The written network differs.
pub fn prefixes(bytes: &[u8]) {
    std::str::from_utf8(bytes).unwrap_or_default().lines().for_each(round_trip::<Prefix>);
}

/// Quantities with a unit, one a line; a valid one is written, and reads back as the same quantity.
///
/// # Panics
/// The written quantity differs.
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

/// The program of a target: libFuzzer's under cargo-fuzz; else one that runs the given files.
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
