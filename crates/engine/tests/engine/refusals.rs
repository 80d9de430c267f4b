//! Invalid plans are rejected with the key path before anything is written.

use crate::common::{Bench, ENGINE, events, plan};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output, Stdio};

fn refused(change: impl FnOnce(&mut Value)) -> Value {
    let mut plan = plan(2);
    change(&mut plan);
    refused_text(&plan.to_string())
}

fn refused_text(plan: &str) -> Value {
    let bench = Bench::with(&Value::Null);
    fs::write(bench.path("plan.json"), plan).unwrap();
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!bench.path("run").exists(), "nothing is written");
    let [error] = &events(&output)[..] else { panic!("{output:?}") };
    assert_eq!(error["event"], "error");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(error["message"].as_str().unwrap()), "standard error says the same: {stderr}");
    assert!(!error["hint"].as_str().unwrap().is_empty());
    error.clone()
}

fn key(error: &Value) -> &str {
    error["place"].as_str().unwrap().split_once("plan.json").unwrap().1.trim_start_matches(": ")
}

#[test]
fn a_value_of_the_wrong_kind_is_named() {
    let error = refused(|plan| plan["experiments"][1]["flows"][0]["count"] = json!("two"));
    assert_eq!((&error["code"], key(&error)), (&json!("bad-plan"), "experiments[1].flows[0].count"));
    assert_eq!(error["found"], "invalid type: string \"two\"");
    assert!(error["expected"].as_str().unwrap().starts_with("u32"), "{error}");
}

#[test]
fn an_unknown_key_is_named() {
    let error = refused(|plan| plan["experiments"][0]["bufer"] = json!(1));
    assert_eq!(key(&error), "experiments[0].bufer");
    assert_eq!(error["found"], "unknown field `bufer`");
}

#[test]
fn a_truncated_plan_or_one_with_trailing_data_is_reported() {
    let text = plan(1).to_string();
    assert!(refused_text(&text[..text.len() / 2])["found"].as_str().unwrap().contains("EOF"));
    assert!(refused_text(&format!("{text}{text}"))["found"].as_str().unwrap().contains("trailing characters"));
    assert!(refused_text("")["found"].as_str().unwrap().contains("EOF"));
}

#[test]
fn a_plan_of_another_format_is_refused() {
    let error = refused(|plan| plan["format"] = json!(2));
    assert_eq!((key(&error), &error["found"], &error["expected"]), ("format", &json!("2"), &json!("1")));
}

#[test]
fn an_unknown_engine_is_rejected_with_the_available_ones() {
    let bench = Bench::with(&{
        let mut plan = plan(1);
        plan["engine"] = json!("simm");
        plan
    });
    let output = bench.run("run", &[]).output().unwrap();
    let error = &events(&output)[0];
    assert_eq!(
        [&error["code"], &error["found"], &error["expected"]],
        ["unknown-engine", "`simm`", "one of sim, kernel, uml, vm"]
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trace_missing_from_the_plan_is_named() {
    let error = refused(|plan| {
        plan["traces"] = json!({"lte.up": [1, 2]});
        plan["experiments"][1]["reverse"]["capacity"] = json!({"kind": "trace", "trace": "lte.down"});
    });
    assert_eq!(key(&error), "experiments[1].reverse.capacity.trace");
    assert_eq!([&error["found"], &error["expected"]], ["`lte.down`", "a name in traces (lte.up)"]);
}

#[test]
fn two_experiments_with_the_same_numbers_are_refused() {
    let error = refused(|plan| plan["experiments"][1]["repetition"] = json!(0));
    assert_eq!(key(&error), "experiments[1]");
    assert_eq!(error["expected"], "numbers that experiments[0] does not have");
}

#[test]
fn sweep_keys_that_do_not_yield_the_same_columns_are_rejected() {
    let error = refused(|plan| plan["experiments"][1]["sweep"]["path.buffer"] = json!(2));
    assert_eq!(key(&error), "experiments[1].sweep");
    assert_eq!(error["found"], "flow.large.cc (a text), path.buffer (a number)");
    assert_eq!(error["expected"], "flow.large.cc (a text), path.buffer (a text), as in experiments[0]");
    let error = refused(|plan| {
        for experiment in plan["experiments"].as_array_mut().unwrap() {
            experiment["sweep"] = json!({"host": "a"});
        }
    });
    assert_eq!([&error["found"], &error["expected"]], ["`host`", "a key that is not a column of flows"]);
}

#[test]
fn an_unreadable_plan_is_named() {
    let bench = Bench::with(&Value::Null);
    fs::remove_file(bench.path("plan.json")).unwrap();
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(events(&output)[0]["code"], "no-plan");
}

#[test]
fn a_run_directory_of_another_plan_is_rejected_and_not_modified() {
    let bench = Bench::with(&plan(1));
    let before = bench.run_whole("run");
    fs::write(bench.path("plan.json"), plan(2).to_string()).unwrap();
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = &events(&output)[0];
    assert_eq!(error["code"], "other-run");
    assert!(error["hint"].as_str().unwrap().contains("rm -r"), "{error}");
    assert!(crate::common::tables(&bench.path("run")) == before);
}

#[test]
fn a_command_that_is_not_a_list_of_words_is_rejected() {
    let bench = Bench::with(&plan(1));
    let output = bench.run("run", &[]).env("THALWEG_COMMAND", "thalweg run").output().unwrap();
    assert_eq!((output.status.code(), &events(&output)[0]["place"]), (Some(2), &json!("THALWEG_COMMAND")));
}

#[test]
fn a_parameter_out_of_range_is_reported_without_running_the_plan() {
    let mut plan = plan(2);
    for experiment in plan["experiments"].as_array_mut().unwrap() {
        experiment["flows"][0]["cc"] = json!("bbr");
        experiment["flows"][0]["cc_params"] = json!({"probe_gain": 2.0});
    }
    let bench = Bench::with(&plan);
    let output = Command::new(ENGINE).args(["check", "--plan"]).arg(bench.path("plan.json")).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [refused] = &answer["refused"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!(refused["code"], "invalid-experiment");
    assert_eq!(refused["message"], "flows.large.cc_params.probe_gain: found 2, expected a number from 1 to 1.9");
}

#[test]
fn shards_that_do_not_exist_are_refused() {
    let bench = Bench::with(&plan(1));
    for shard in ["0/2", "3/2", "2", "a/b", "1/0", "-1/2"] {
        let output = bench.run("run", &["--shard", shard]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{shard}");
    }
}

#[test]
fn selected_experiments_must_be_in_the_plan() {
    let bench = Bench::with(&plan(1));
    for (content, found) in [("[[0, 1]]", "[0, 1]"), ("[0]", "invalid type"), ("[", "EOF")] {
        fs::write(bench.path("due.json"), content).unwrap();
        let due = bench.path("due.json").display().to_string();
        let output = bench.run("run", &["--due", &due]).output().unwrap();
        assert_eq!((output.status.code(), &events(&output)[0]["code"]), (Some(2), &json!("bad-due")), "{content}");
        assert!(events(&output)[0]["found"].as_str().unwrap().contains(found), "{content}");
    }
    assert!(!bench.path("run").exists(), "nothing is made for a list that is refused");
}

#[test]
fn merging_a_directory_that_is_not_a_run_directory_is_rejected() {
    let bench = Bench::with(&plan(1));
    let output = Command::new(ENGINE)
        .arg("merge")
        .arg("--out")
        .arg(bench.path("out"))
        .arg(bench.path("nothing"))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), &events(&output)[0]["code"]), (Some(2), &json!("bad-run-file")));
    assert!(!bench.path("out").exists());
}

fn with_open_files(limit: u32, arguments: &[&str]) -> Output {
    let bench = Bench::with(&plan(2));
    let script = format!("ulimit -n {limit}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", ENGINE]).args(arguments);
    if arguments == ["run"] {
        command.arg("--plan").arg(bench.path("plan.json")).arg("--out").arg(bench.path("run"));
    }
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn too_few_open_files_are_reported_as_a_retryable_error() {
    for arguments in [&["run"][..], &["capabilities", "--json"]] {
        let output = with_open_files(20, arguments);
        assert_eq!(output.status.code(), Some(75), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("found 20, expected at least 80") && stderr.contains("ulimit -n"), "{stderr}");
    }
    assert_eq!(with_open_files(100, &["run"]).status.code(), Some(0));
}
