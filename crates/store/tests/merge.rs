//! Shards become one run.

mod common;

use common::{commit, plan, run_of, some_rows};
use serde_json::json;
use std::fs;
use std::path::Path;
use thalweg_store::{Host, Merged, RunDirectory, merge};

/// A run directory of three experiments that has those of `numbers`.
fn shard(directory: &Path, numbers: &[usize]) {
    let run = run_of(plan(3));
    let directory = RunDirectory::open(directory, run.clone()).unwrap();
    for &number in numbers {
        let id = &run.experiments[number].id;
        directory.note(&json!({"event": "started", "id": id})).unwrap();
        commit(&directory, id, some_rows).unwrap();
    }
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn merged_shards_hold_every_experiment_once_and_a_second_merge_changes_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let parts = [temporary.path().join("a"), temporary.path().join("b")];
    let out = temporary.path().join("out");
    shard(&parts[0], &[0, 1]);
    shard(&parts[1], &[1]);
    let merge = || merge(&out, &parts, "0.1.0", Host::default(), None).unwrap();
    assert_eq!(merge(), Merged { experiments: 3, copied: 2, present: 0, missing: 1 });
    assert_eq!(["flows", "samples", "state", "queue"].map(|table| count(&out.join(table))), [2; 4]);
    let journal = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert_eq!(journal.matches("\"started\"").count(), 3);
    assert_eq!(journal.matches("\"merged\"").count(), 1, "only the first shard had something new");
    assert_eq!(merge(), Merged { experiments: 3, copied: 0, present: 2, missing: 1 });
    assert_eq!(fs::read_to_string(out.join("events.jsonl")).unwrap(), journal);
}

#[test]
fn a_shard_of_another_plan_is_refused_before_anything_is_written() {
    let temporary = tempfile::tempdir().unwrap();
    let parts = [temporary.path().join("a"), temporary.path().join("b")];
    shard(&parts[0], &[0]);
    drop(RunDirectory::open(&parts[1], run_of(plan(2))).unwrap());
    let out = temporary.path().join("out");
    let error = merge(&out, &parts, "0.1.0", Host::default(), None).unwrap_err();
    assert_eq!((error.code(), error.place()), ("other-run", parts[1].display().to_string()));
    assert!(!error.hint().contains("rm "), "a shard must not be offered for removal: {}", error.hint());
    assert!(!out.exists());
}

#[test]
fn something_that_is_no_run_directory_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let error = merge(&temporary.path().join("out"), &[temporary.path().join("a")], "0.1.0", Host::default(), None);
    assert_eq!(error.unwrap_err().code(), "bad-run-file");
}
