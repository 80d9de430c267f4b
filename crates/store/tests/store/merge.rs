//! Merging shards into one run.

use crate::common::{commit, commit_recorded, plan, run_of, some_rows};
use serde_json::json;
use std::fs;
use std::path::Path;
use thalweg_store::{Host, Merged, RunDirectory, merge};

/// Creates a run directory of a plan with three experiments, which contains those in `numbers`.
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
fn a_shard_of_another_plan_is_rejected_before_any_write() {
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
fn a_directory_that_is_not_a_run_directory_is_rejected() {
    let temporary = tempfile::tempdir().unwrap();
    let error = merge(&temporary.path().join("out"), &[temporary.path().join("a")], "0.1.0", Host::default(), None);
    assert_eq!(error.unwrap_err().code(), "bad-run-file");
}

#[test]
fn command_logs_and_recorded_packets_are_merged_once() {
    let temporary = tempfile::tempdir().unwrap();
    let parts = [temporary.path().join("a"), temporary.path().join("b"), temporary.path().join("c")];
    let out = temporary.path().join("out");
    let run = run_of(plan(3));
    for (part, number) in parts[..2].iter().zip([0, 1]) {
        let directory = RunDirectory::open(part, run.clone()).unwrap();
        directory.log(&format!("# experiment {number}\nip link add {number}\n")).unwrap();
        let capture = if number == 0 { b"capture" } else { b"another" };
        commit_recorded(&directory, &run.experiments[number].id, capture, some_rows).unwrap();
    }
    shard(&parts[2], &[1]);
    fs::write(parts[2].join("commands.log"), "# of no experiment that is taken\n").unwrap();
    for _ in 0..2 {
        merge(&out, &parts, "0.1.0", Host::default(), None).unwrap();
        let commands = fs::read_to_string(out.join("commands.log")).unwrap();
        assert_eq!(commands, "# experiment 0\nip link add 0\n# experiment 1\nip link add 1\n");
        assert_eq!(count(&out.join("packets")), 4);
        let capture = out.join("packets").join(format!("{}.pcapng", run.experiments[1].id));
        assert_eq!(fs::read(capture).unwrap(), b"another");
    }
}

#[test]
fn merged_shards_without_recorded_packets_have_no_packets_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let part = temporary.path().join("a");
    shard(&part, &[0]);
    let out = temporary.path().join("out");
    merge(&out, &[part], "0.1.0", Host::default(), None).unwrap();
    assert!(!out.join("packets").exists() && !out.join("commands.log").exists());
}
