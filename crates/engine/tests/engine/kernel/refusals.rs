//! Unsupported experiments are rejected, with a hint at the alternative.

use crate::common::{ENGINE, events};
use crate::stage::{bench, experiment, is_available, not_tested};
use serde_json::{Value, json};
use std::fs::File;
use std::process::Command;

fn failed(experiment: Value) -> Value {
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").expect("an experiment failed").clone();
    let tables = ["flows", "samples", "state", "queue"].map(|table| bench.path("run").join(table));
    assert!(tables.iter().all(|table| std::fs::read_dir(table).unwrap().next().is_none()), "nothing is left of it");
    failed
}

/// Waits until no concurrent test of the agent has an algorithm registered.
fn lock_registrations() -> File {
    let lock = File::create(std::env::temp_dir().join("thalweg-agent-tests.lock")).expect("a file for the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    lock
}

fn check(failed: &Value, code: &str, words: &[&str]) {
    assert_eq!(failed["code"], code, "{failed}");
    let message = failed["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

#[test]
fn a_plan_is_checked_without_running_it_and_each_reason_is_reported_once() {
    if !is_available() {
        return;
    }
    let repeated = |experiment: &Value, number: u64| {
        let mut repeated = experiment.clone();
        repeated["experiment"] = json!(number);
        repeated
    };
    let mut recorded = experiment();
    recorded["engine"] = json!({"link": "netem", "traffic": "builtin", "offloads": false, "record": true});
    let plan = bench([repeated(&experiment(), 0), repeated(&recorded, 1), repeated(&recorded, 2)]);
    let output = Command::new(ENGINE).args(["check", "--plan"]).arg(plan.path("plan.json")).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = answer["refused"].as_array().unwrap();
    assert_eq!((refused.len(), &refused[0]["experiment"]), (1, &json!(1)), "{answer}");
    check(&refused[0], "not-on-netem", &["engine.record"]);
}

#[test]
fn an_algorithm_missing_in_the_kernel_is_rejected_with_the_available_ones() {
    if is_available() {
        let mut experiment = experiment();
        experiment["flows"][0]["cc"] = json!("cubick");
        check(&failed(experiment), "unknown-cc", &["flows.large.cc", "`cubick`", "reno", "--engine sim"]);
    }
}

#[test]
fn a_missing_agent_algorithm_is_reported_with_reason_and_remedy() {
    if !is_available() {
        return;
    }
    let _registrations = lock_registrations();
    // Sets the path of the agent, so that the suggested command is known.
    let place = ("THALWEG_AGENT", "/opt/thalweg-agent");
    let capabilities = Command::new(ENGINE).args(["capabilities", "--json"]).env(place.0, place.1).output().unwrap();
    let capabilities: Value = serde_json::from_slice(&capabilities.stdout).unwrap();
    let kernel = capabilities["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == "kernel").unwrap();
    for name in ["bbr_cpu", "bbr3"] {
        let is_it = |algorithm: &&Value| algorithm["name"] == name;
        let Some(lack) = kernel["lacks"].as_array().unwrap().iter().find(is_it) else {
            assert!(
                kernel["cc"].as_array().unwrap().iter().any(|algorithm| is_it(&algorithm)),
                "it is there, or lacking: {kernel}"
            );
            not_tested("the error for a missing algorithm of the agent", &format!("{name} is loaded on this machine"));
            continue;
        };
        let (why, hint) = (lack["why"].as_str().unwrap(), lack["hint"].as_str().unwrap());
        if why == "it is not loaded" {
            assert_eq!(hint, format!("sudo /opt/thalweg-agent cc load {name} --keep"));
        }
        let mut experiment = experiment();
        experiment["flows"][0]["cc"] = json!(name);
        let bench = bench([experiment]);
        let output = bench.run("run", &[]).env(place.0, place.1).output().unwrap();
        let failed = events(&output).into_iter().find(|event| event["event"] == "failed").unwrap();
        check(&failed, "unknown-cc", &["flows.large.cc", &format!("this kernel has no `{name}`"), why, hint]);
    }
}

#[test]
fn a_host_qdisc_missing_in_the_kernel_is_rejected_with_the_available_ones() {
    if is_available() {
        let mut experiment = experiment();
        experiment["hosts"]["sender"]["qdisc"] = json!("nosuch");
        let words = ["host.sender.qdisc", "`nosuch`", "unknown", "pfifo", "modprobe sch_nosuch", "--engine vm"];
        check(&failed(experiment), "no-qdisc", &words);
    }
}

#[test]
fn parameters_of_kernel_algorithms_are_rejected() {
    if is_available() {
        let mut experiment = experiment();
        experiment["flows"][0]["cc_params"] = json!({"beta": 0.5});
        check(&failed(experiment), "not-honoured", &["flows.large.cc_params", "beta", "--engine sim"]);
    }
}

#[test]
fn parameters_of_agent_algorithms_are_rejected_with_the_command_that_sets_them() {
    if is_available() {
        let mut experiment = experiment();
        experiment["flows"][0]["cc"] = json!("bbr_tuned");
        experiment["flows"][0]["cc_params"] = json!({"probe_gain": 1.5});
        let words = ["flows.large.cc_params", "--engine vm", "cc load bbr_tuned --set probe_gain=1.5 --keep"];
        check(&failed(experiment), "not-honoured", &words);
    }
}

#[test]
fn a_rate_above_the_measured_capacity_of_the_machine_is_rejected() {
    if is_available() {
        let mut experiment = experiment();
        experiment["forward"]["capacity"]["steps"][0]["rate_bps"] = json!(400_000_000_000_u64);
        check(&failed(experiment), "too-fast", &["400000 Mbit/s", "this machine carried", "--engine sim"]);
    }
}

#[test]
fn qdiscs_missing_in_the_kernel_are_rejected_with_the_alternative() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["engine"]["link"] = json!("netem");
    let bench = bench([experiment.clone()]);
    let output = bench.run("run", &[]).output().unwrap();
    if output.status.success() {
        return not_there();
    }
    check(&failed(experiment), "no-qdisc", &["netem", "engine.link = \"relay\""]);
}

/// Reports that the test is skipped, because the kernel has all queue disciplines.
fn not_there() {
    if std::env::var_os("THALWEG_CI").is_none() {
        not_tested("the error for missing queue disciplines", "this kernel has them all");
    }
}
