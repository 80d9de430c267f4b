//! Replays calls recorded from the kernel's controllers against this crate's in lockstep, and compares their decisions
//! and words of state. docs/concepts/fidelity.md explains how recordings are made and how to read the table.

mod control;
mod coverage;
mod known;
mod recording;
mod replay;
mod table;

use std::collections::BTreeMap;
use thalweg_cc::build;

/// Maximum total size of the recordings in bytes, since every checkout contains them.
const MAX_BYTES: u64 = 2_000_000;

#[test]
fn every_difference_from_the_kernel_is_listed_and_explained() {
    for recording in recording::all() {
        let outcome = replay_of(&recording);
        let algorithm = &recording.header["algorithm"];
        let unknown = outcome.deviations.iter().find(|deviation| known::name(algorithm, deviation).is_none());
        assert!(unknown.is_none(), "{}: {}", recording.name, unknown.unwrap());
    }
}

#[test]
fn the_documented_table_matches_the_replay() {
    let rows: Vec<String> =
        recording::all().iter().map(|recording| table::row(recording, &replay_of(recording))).collect();
    table::assert_documented(&rows);
}

#[test]
fn the_recordings_stay_small() {
    let sizes = std::fs::read_dir(recording::folder()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let bytes: u64 = sizes.sum();
    assert!(bytes < MAX_BYTES, "{bytes} bytes");
}

fn replay_of(recording: &recording::Recording) -> replay::Outcome {
    let mut controller = build(&recording.header["algorithm"], &BTreeMap::new()).unwrap();
    replay::replay(recording, controller.as_mut())
}
