//! Runs a parser on many damaged forms of its seeds.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::time::{Duration, Instant};

/// Number of cases between two checks of the time.
const CASES: u32 = 64;

/// Numbers and texts that are inserted into the input or overwrite it, because parsers tend to fail on them.
const HOSTILE: &[&[u8]] = &[
    b"\n",
    b"\0",
    b"\"",
    b"[",
    b"{",
    b"/",
    b"\xc3\xa9",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
];

/// Calls `work` with damaged variants of the seeds for about a second, or for `THALWEG_FUZZ_SECONDS`.
///
/// # Panics
/// If `work` panics, with the simplest input found that causes it; or if `seeds` is empty.
pub fn damage(seeds: Vec<Vec<u8>>, work: impl Fn(&[u8])) {
    let seconds = std::env::var("THALWEG_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let damaged = (proptest::sample::select(seeds), vec((place(), edit()), 0..6)).prop_map(|(mut bytes, edits)| {
        edits.iter().for_each(|(place, edit)| edit.apply(&mut bytes, *place));
        bytes
    });
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    while Instant::now() < end {
        let outcome = runner.run(&damaged, |bytes| {
            work(&bytes);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A modification of the input.
#[derive(Clone, Debug)]
enum Edit {
    Set(u8),
    Insert(Vec<u8>),
    Overwrite(&'static [u8]),
    Remove(usize),
    Repeat(usize),
    End,
}

/// Returns a position in the input, in units of 1/65536 of its length. Positions near the start are more frequent,
/// because headers determine most of the parsing.
fn place() -> impl Strategy<Value = u16> {
    prop_oneof![any::<u16>(), 0..2_000u16]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        any::<u8>().prop_map(Edit::Set),
        vec(any::<u8>(), 1..9).prop_map(Edit::Insert),
        proptest::sample::select(HOSTILE).prop_map(|bytes| Edit::Insert(bytes.to_vec())),
        proptest::sample::select(HOSTILE).prop_map(Edit::Overwrite),
        (1usize..20).prop_map(Edit::Remove),
        (1usize..200).prop_map(Edit::Repeat),
        Just(Edit::End),
    ]
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, place: u16) {
        let at = ((bytes.len() + 1) * usize::from(place)) >> 16;
        match self {
            Edit::Set(byte) => bytes.iter_mut().skip(at).take(1).for_each(|found| *found = *byte),
            Edit::Insert(new) => drop(bytes.splice(at..at, new.iter().copied())),
            Edit::Overwrite(new) => bytes.iter_mut().skip(at).zip(*new).for_each(|(found, byte)| *found = *byte),
            Edit::Remove(count) => drop(bytes.drain(at..bytes.len().min(at + count))),
            Edit::Repeat(count) => {
                let tail = bytes[at..].to_vec();
                let rest = (0..*count).flat_map(|_| tail.iter().copied()).take(1 << 14);
                bytes.extend(rest.collect::<Vec<u8>>());
            }
            Edit::End => bytes.truncate(at),
        }
    }
}
