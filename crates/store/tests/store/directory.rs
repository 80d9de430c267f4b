//! Run directories under interruptions, other runs and concurrent writers.

use crate::common::{commit, commit_recorded, files, packet, plan, run_of, some_rows, state, sweep};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use thalweg_plan::plan::SweepValue;
use thalweg_store::{Error, Id, RunDirectory, RunFile, Shortage};
use thalweg_trace::Sink;

fn open(directory: &Path, run: &RunFile) -> RunDirectory {
    RunDirectory::open(directory, run.clone()).unwrap()
}

fn ids(run: &RunFile) -> Vec<Id> {
    run.experiments.iter().map(|experiment| experiment.id.clone()).collect()
}

#[test]
fn complete_experiments_are_present_when_the_same_run_is_reopened() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(2));
    let ids = ids(&run);
    let directory = open(temporary.path(), &run);
    assert!(!directory.was_present(&ids[0]));
    commit(&directory, &ids[0], some_rows).unwrap();
    drop(directory);
    let directory = open(temporary.path(), &run);
    assert_eq!([directory.was_present(&ids[0]), directory.was_present(&ids[1])], [true, false]);
}

#[test]
fn run_json_is_written_once() {
    let temporary = tempfile::tempdir().unwrap();
    let mut run = run_of(plan(1));
    drop(open(temporary.path(), &run));
    let before = fs::read(temporary.path().join("run.json")).unwrap();
    run.created = "2030-01-01T00:00:00.000Z".to_owned();
    run.engine_version = "9.9.9".to_owned();
    drop(open(temporary.path(), &run));
    assert_eq!(fs::read(temporary.path().join("run.json")).unwrap(), before);
}

#[test]
fn a_directory_of_another_run_is_rejected_and_not_modified() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    drop(open(temporary.path(), &run));
    let before = files(temporary.path());
    let mut other_name = plan(1);
    other_name.name = "other".to_owned();
    let other_version = RunFile::new(plan(1), "0.1.0", "2", Default::default(), None);
    let cases = [
        (run_of(other_name), "a run of scenario `other`"),
        (other_version, "a run on engine sim, version 2 of its results"),
        (run_of(plan(2)), "the same plan"),
    ];
    for (other, expected) in cases {
        let error = RunDirectory::open(temporary.path(), other).unwrap_err();
        assert_eq!((error.code(), error.expected().as_str()), ("other-run", expected));
        assert!(error.hint().contains("--out"), "{}", error.hint());
    }
    assert_eq!(files(temporary.path()), before);
}

#[test]
fn a_plan_with_fractions_equals_itself_after_a_round_trip() {
    let temporary = tempfile::tempdir().unwrap();
    let mut fractions = plan(1);
    // Long fractions of many magnitudes: a parser that does not round correctly returns a neighbouring value for some.
    let numbers =
        (1..1000).map(|i| (format!("key{i}"), SweepValue::Number(f64::from(i).sqrt() * 10f64.powi(i % 40 - 20))));
    fractions.experiments[0].sweep = numbers.collect();
    drop(open(temporary.path(), &run_of(fractions.clone())));
    open(temporary.path(), &run_of(fractions));
}

#[test]
fn a_second_writer_reports_the_process_that_holds_the_lock() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    let first = open(temporary.path(), &run);
    let error = RunDirectory::open(temporary.path(), run.clone()).unwrap_err();
    assert_eq!(error.code(), "busy");
    assert!(error.found().contains(&format!("process {}", std::process::id())), "{error}");
    drop(first);
    open(temporary.path(), &run);
}

#[test]
fn a_directory_with_foreign_files_is_rejected() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("thesis.tex"), "mine").unwrap();
    let error = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap_err();
    assert_eq!(error.code(), "not-a-run");
    assert!(error.found().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1, "not even a lock is left behind");
}

#[test]
fn unfinished_files_of_dead_processes_are_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(2));
    let ids = ids(&run);
    let directory = open(temporary.path(), &run);
    commit(&directory, &ids[0], some_rows).unwrap();
    drop(directory);
    let complete = files(temporary.path());
    fs::write(temporary.path().join(".tmp-1-0"), "half").unwrap();
    fs::write(temporary.path().join("flows/.tmp-1-1"), "half").unwrap();
    fs::write(temporary.path().join(format!("samples/{}.parquet", ids[1])), "an orphan").unwrap();
    drop(open(temporary.path(), &run));
    assert_eq!(files(temporary.path()), complete);
}

#[test]
fn an_experiment_whose_last_file_cannot_be_written_leaves_no_files() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    let id = &ids(&run)[0];
    let directory = open(temporary.path(), &run);
    let complete = files(temporary.path());
    // A directory in place of the file: a failure of a rename that does not depend on the user who runs the test.
    let obstacle = temporary.path().join(format!("flows/{id}.parquet"));
    fs::create_dir(&obstacle).unwrap();
    let error = commit(&directory, id, some_rows).unwrap_err();
    assert_eq!(error.code(), "not-accessible");
    assert_eq!(files(temporary.path()), complete);
    fs::remove_dir(&obstacle).unwrap();
    commit(&directory, id, some_rows).unwrap();
    assert_eq!(files(temporary.path()).len(), complete.len() + 4);
}

#[test]
fn an_unfinished_experiment_leaves_no_files() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    let id = &ids(&run)[0];
    let directory = open(temporary.path(), &run);
    let complete = files(temporary.path());
    let under_way = || {
        let mut tables = directory.begin(id, &sweep(), &["direction"]).unwrap();
        (0..300_000).for_each(|t_us| tables.state(state(0, t_us, "pacing_gain")));
        let written = fs::read_dir(temporary.path().join("state")).unwrap().next().unwrap().unwrap();
        assert!(written.metadata().unwrap().len() > 10_000, "rows must be written before the experiment ends");
        assert!(!written.file_name().to_str().unwrap().ends_with(".parquet"), "readers must not take it for a table");
        tables
    };
    under_way().discard().unwrap();
    assert_eq!(files(temporary.path()), complete);
    let bug = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _tables = under_way();
        std::panic::resume_unwind(Box::new("a bug"));
    }));
    assert!(bug.is_err());
    assert_eq!(files(temporary.path()), complete);
}

#[test]
fn recorded_packets_are_written_as_table_and_capture_or_not_at_all() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    let id = &ids(&run)[0];
    let directory = open(temporary.path(), &run);
    let complete = files(temporary.path());
    let mut tables = directory.begin(id, &sweep(), &["direction"]).unwrap();
    tables.begin_packets().unwrap();
    let capture = tables.begin_capture().unwrap().to_owned();
    assert_ne!(capture.extension().unwrap_or_default(), "pcapng", "readers must not take it for a whole capture");
    fs::write(&capture, "half").unwrap();
    (0..200_000).for_each(|number| tables.packet(packet(number)));
    tables.discard().unwrap();
    assert_eq!(files(temporary.path()), complete);

    // The last rename fails, and the earlier ones are undone.
    let obstacle = temporary.path().join(format!("flows/{id}.parquet"));
    fs::create_dir(&obstacle).unwrap();
    commit_recorded(&directory, id, b"capture", some_rows).unwrap_err();
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(files(temporary.path()), complete);

    commit_recorded(&directory, id, b"capture", some_rows).unwrap();
    let packets = temporary.path().join("packets");
    assert_eq!(files(&packets), [packets.join(format!("{id}.parquet")), packets.join(format!("{id}.pcapng"))]);
    assert_eq!(fs::read(packets.join(format!("{id}.pcapng"))).unwrap(), b"capture");
}

#[test]
fn a_run_without_packet_recording_has_no_packets_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    commit(&open(temporary.path(), &run), &ids(&run)[0], some_rows).unwrap();
    assert!(!temporary.path().join("packets").exists());
}

#[test]
fn unfinished_packet_files_of_dead_processes_are_removed_and_complete_ones_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(2));
    let ids = ids(&run);
    commit_recorded(&open(temporary.path(), &run), &ids[0], b"capture", some_rows).unwrap();
    let complete = files(temporary.path());
    for leftover in [".tmp-1-0".to_owned(), format!("{}.pcapng", ids[1]), format!("{}.parquet", ids[1])] {
        fs::write(temporary.path().join("packets").join(leftover), "half").unwrap();
    }
    drop(open(temporary.path(), &run));
    assert_eq!(files(temporary.path()), complete);
}

#[test]
fn commands_of_several_starts_are_logged_in_order() {
    let temporary = tempfile::tempdir().unwrap();
    let run = run_of(plan(1));
    for lines in ["ip link add a\n", "ip link add b\nip link add c\n"] {
        open(temporary.path(), &run).log(lines).unwrap();
    }
    let commands = fs::read_to_string(temporary.path().join("commands.log")).unwrap();
    assert_eq!(commands, "ip link add a\nip link add b\nip link add c\n");
}

#[test]
fn a_damaged_run_json_is_an_error_that_names_it() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("run.json"), "{\"format\":1,").unwrap();
    let error = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap_err();
    assert_eq!(error.code(), "bad-run-file");
    assert!(error.place().ends_with("run.json"));
}

#[test]
fn an_incomplete_last_line_of_the_journal_is_removed_and_complete_ones_are_kept() {
    let line = "{\"at\":\"2026-01-31T12:00:00.000Z\",\"event\":\"interrupted\"}\n";
    let long_line = format!("{{\"at\":\"2026\",\"event\":\"failed\",\"message\":\"{}\"}}\n", "x".repeat(10_000));
    let torn_after = [String::new(), line.to_owned(), line.repeat(3), long_line];
    for lines in torn_after {
        for tail in ["", "{\"at\":\"20", &"\0".repeat(5000)] {
            let temporary = tempfile::tempdir().unwrap();
            let run = run_of(plan(1));
            drop(open(temporary.path(), &run));
            let path = temporary.path().join("events.jsonl");
            fs::write(&path, format!("{lines}{tail}")).unwrap();
            let directory = open(temporary.path(), &run);
            assert_eq!(fs::read_to_string(&path).unwrap(), lines);
            directory.note(&json!({"event": "interrupted"})).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let last: Value = serde_json::from_str(text.strip_prefix(&lines).unwrap()).unwrap();
            assert_eq!(last["event"], "interrupted");
            assert_eq!(last["at"].as_str().unwrap().len(), "2026-01-31T12:00:00.000Z".len());
        }
    }
}

#[test]
fn an_error_names_the_next_step() {
    let short_of = |shortage, errno| Error::Shortage {
        directory: PathBuf::from("runs/a b"),
        shortage,
        source: std::io::Error::from_raw_os_error(errno),
    };
    let full = short_of(Shortage::Disk, 28);
    assert_eq!(
        full.to_string(),
        "runs/a b: found a full disk (No space left on device (os error 28)), expected enough of this resource \
         for the tables of an experiment"
    );
    let closed = short_of(Shortage::Descriptors, 24);
    assert_eq!(closed.code(), "too-few-descriptors");
    assert!(closed.hint().contains("ulimit -n") && !closed.hint().contains("df -h"), "{}", closed.hint());
    assert!(full.hint().contains("df -h 'runs/a b'") && full.hint().contains("the same command again"));
}
