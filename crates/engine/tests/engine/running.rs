//! A plan produces a complete and reproducible run directory.

use crate::common::{Bench, ENGINE, events, journal, names, plan, tables};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_number_of_threads_does_not_change_a_byte_and_the_seed_does() {
    let bench = Bench::with(&plan(4));
    for (out, threads) in [("one", "1"), ("two", "2"), ("eight", "8")] {
        assert!(bench.run(out, &["--threads", threads]).output().unwrap().status.success());
    }
    let single_threaded = tables(&bench.path("one"));
    assert_eq!(single_threaded.len(), 16);
    assert!(single_threaded == tables(&bench.path("two")) && single_threaded == tables(&bench.path("eight")));
    let contents = |table: &str| {
        single_threaded.iter().filter(|(path, _)| path.starts_with(table)).map(|(_, bytes)| bytes).collect()
    };
    let samples: std::collections::BTreeSet<&Vec<u8>> = contents("samples");
    assert_eq!(samples.len(), 4, "repetitions with other seeds must differ");
}

#[test]
fn tables_of_several_row_groups_do_not_depend_on_the_number_of_threads() {
    let mut plan = plan(3);
    for experiment in plan["experiments"].as_array_mut().unwrap() {
        experiment["sample_interval_ns"] = json!(5_000);
    }
    let bench = Bench::with(&plan);
    for (out, threads) in [("one", "1"), ("three", "3")] {
        assert!(bench.run(out, &["--threads", threads]).output().unwrap().status.success());
    }
    let single_threaded = tables(&bench.path("one"));
    for path in single_threaded.keys().filter(|path| path.starts_with("samples")) {
        let reader = SerializedFileReader::new(fs::File::open(bench.path("one").join(path)).unwrap()).unwrap();
        assert!(reader.num_row_groups() > 1, "the experiment must be long enough for this test");
    }
    assert!(single_threaded == tables(&bench.path("three")));
}

#[test]
fn events_and_journal_record_the_run() {
    let bench = Bench::with(&plan(2));
    let output = bench.run("run", &["--threads", "1"]).output().unwrap();
    let events = events(&output);
    assert_eq!(names(&events), ["plan", "started", "finished", "started", "finished", "done"]);
    assert_eq!(events[0], json!({"event": "plan", "experiments": 2, "present": 0, "pending": 2, "threads": 1}));
    let finished = &events[2];
    assert!(finished["packets"].as_u64().unwrap() > 700, "1 MB is at least 700 packets: {finished}");
    assert!(finished["simulated_s"].as_f64().unwrap() > 0.8, "1 MB at 10 Mbit/s takes 0.8 s: {finished}");
    assert!(bench.path("run/flows").join(format!("{}.parquet", finished["id"].as_str().unwrap())).exists());
    let mut journal = journal(&bench.path("run"));
    for line in &mut journal {
        assert!(line["at"].as_str().unwrap().ends_with('Z'));
        line.as_object_mut().unwrap().shift_remove("at");
    }
    assert_eq!(journal, events[1..5]);
}

#[test]
fn a_finished_run_is_not_run_again() {
    let bench = Bench::with(&plan(2));
    let tables = bench.run_whole("run");
    let output = bench.run("run", &[]).output().unwrap();
    let events = events(&output);
    assert_eq!(names(&events), ["plan", "done"]);
    assert_eq!([&events[0]["present"], &events[0]["pending"], &events[1]["present"]], [2, 0, 2]);
    assert!(output.stderr.is_empty());
    assert!(crate::common::tables(&bench.path("run")) == tables);
}

#[test]
fn run_json_records_the_plan_the_command_and_the_machine() {
    let bench = Bench::with(&plan(2));
    let mut command = bench.run("run", &[]);
    assert!(command.env("THALWEG_COMMAND", r#"["thalweg","run","a b.toml"]"#).output().unwrap().status.success());
    let run: Value = serde_json::from_slice(&fs::read(bench.path("run/run.json")).unwrap()).unwrap();
    assert_eq!(run["command"], json!(["thalweg", "run", "a b.toml"]));
    assert_eq!(
        [&run["format"], &run["engine"], &run["experiments"][1]["repetition"]],
        [&json!(1), &json!("sim"), &json!(1)]
    );
    assert_eq!(run["plan"]["experiments"][1]["seed"], 101);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(run["host"]["kernel"].as_str().unwrap().contains(kernel.trim()));
    assert!(run["host"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn the_plan_of_a_run_directory_can_be_run_again() {
    let bench = Bench::with(&plan(2));
    let first = bench.run_whole("first");
    let replay = Command::new(ENGINE)
        .args(["run", "--plan"])
        .arg(bench.path("first/run.json"))
        .arg("--out")
        .arg(bench.path("second"))
        .output();
    assert!(replay.unwrap().status.success());
    assert!(tables(&bench.path("second")) == first);
}

#[test]
fn a_plan_may_come_from_standard_input() {
    let bench = Bench::with(&plan(1));
    let expected = bench.run_whole("file");
    let mut command = Command::new(ENGINE);
    command.args(["run", "--plan", "-", "--out"]).arg(bench.path("stdin")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(plan(1).to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(tables(&bench.path("stdin")) == expected);
}

#[test]
fn merged_shards_equal_the_full_run() {
    let bench = Bench::with(&plan(5));
    let tables_of_all = bench.run_whole("whole");
    for shard in ["1/3", "2/3", "3/3"] {
        let output = bench.run(&shard.replace('/', "-"), &["--shard", shard]).output().unwrap();
        assert!(output.status.success());
        let expected = if shard == "3/3" { 1 } else { 2 };
        assert_eq!(events(&output)[0]["experiments"], expected);
    }
    let merge = |parts: &[&str]| {
        let mut command = Command::new(ENGINE);
        command.arg("merge").arg("--out").arg(bench.path("merged"));
        command.args(parts.iter().map(|part| bench.path(part))).output().unwrap()
    };
    let incomplete = merge(&["1-3", "3-3"]);
    assert_eq!(
        events(&incomplete),
        [json!({"event": "merged", "experiments": 5, "copied": 3, "present": 0, "missing": 2})]
    );
    assert!(
        String::from_utf8_lossy(&incomplete.stderr).contains("2 of 5 experiments are missing from these directories")
    );
    let all = merge(&["1-3", "2-3", "3-3"]);
    assert_eq!(events(&all), [json!({"event": "merged", "experiments": 5, "copied": 2, "present": 3, "missing": 0})]);
    assert!(all.stderr.is_empty());
    assert!(tables(&bench.path("merged")) == tables_of_all);
    let resumed = bench.run("merged", &[]).output().unwrap();
    assert_eq!(names(&events(&resumed)), ["plan", "done"], "a merged directory is a run directory like others");
}

#[test]
fn experiments_that_are_not_selected_are_left_for_a_later_run() {
    let bench = Bench::with(&plan(4));
    let tables_of_all = bench.run_whole("whole");
    fs::write(bench.path("due.json"), "[[0, 0], [0, 2]]").unwrap();
    let due = bench.path("due.json").display().to_string();
    let selected = bench.run("run", &["--due", &due]).output().unwrap();
    assert_eq!(selected.status.code(), Some(0));
    assert_eq!(events(&selected)[0]["experiments"], 2);
    assert_eq!(fs::read_dir(bench.path("run/flows")).unwrap().count(), 2);
    let rest = events(&bench.run("run", &[]).output().unwrap());
    assert_eq!([&rest[0]["experiments"], &rest[0]["present"], &rest[0]["pending"]], [4, 2, 2]);
    assert!(tables(&bench.path("run")) == tables_of_all, "the plan stays whole, whatever was due when");
}

#[test]
fn the_smallest_run_reports_an_unknown_algorithm_of_a_flow() {
    let mut plan = plan(2);
    plan["experiments"][1]["flows"][0]["cc"] = json!("cubick");
    let bench = Bench::with(&plan);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!([&failed["code"], &failed["repetition"]], [&json!("invalid-experiment"), &json!(1)]);
    assert!(failed["message"].as_str().unwrap().contains("cubick"), "{failed}");
    assert_eq!(tables(&bench.path("run")).len(), 4, "the other experiment is there");
}
