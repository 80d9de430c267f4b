//! The table in results.md in this folder: one row per recording.

use crate::known;
use crate::recording::Recording;
use crate::replay::Outcome;
use std::collections::BTreeMap;
use std::path::Path;

/// Path of the page from the root of the repository.
const PAGE: &str = "crates/cc/tests/lockstep/results.md";

/// The first columns of the table, which identify it.
const HEAD: &str = "| recording | ACKs | equal |";

pub fn row(recording: &Recording, outcome: &Outcome) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for deviation in &outcome.deviations {
        *counts.entry(known::name(&recording.header["algorithm"], deviation).unwrap_or("unknown")).or_default() += 1;
    }
    let deviations: Vec<String> = counts.iter().map(|(name, count)| format!("{count}: {name}")).collect();
    format!(
        "| {} | {} | {} | {} | {} | {} |",
        recording.name,
        outcome.acks,
        outcome.acks - outcome.unequal_acks,
        outcome.calls,
        outcome.compared,
        deviations.join(", ")
    )
}

/// Fails unless the page contains exactly these rows.
pub fn assert_documented(rows: &[String]) {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE)).unwrap();
    let table = page.lines().skip_while(|line| !line.starts_with(HEAD));
    let documented: Vec<&str> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(documented == rows, "the table in {PAGE} is not what the replay finds; that is:\n{}\n", rows.join("\n"));
}
