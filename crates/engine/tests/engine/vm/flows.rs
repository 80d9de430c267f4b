//! Flows that a guest's kernel sends.

use super::{bench, capabilities, is_available, kernel};
use crate::common::ENGINE;
use crate::stage::{Outcome, acked_bytes, experiment, flow, not_tested, number};
use parquet::record::Field;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Payload of a flow: more than the ten packets of the initial window, which need no acknowledgement.
const BYTES: f64 = 100_000.0;

/// Returns the common experiment with flows of `BYTES`; it ends when they complete.
fn sized(names_and_ccs: &[(&str, &str)]) -> Value {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(300_000_000_000_u64);
    experiment["flows"] = names_and_ccs.iter().map(|(name, cc)| flow(name, cc)).collect();
    for flow in experiment["flows"].as_array_mut().unwrap() {
        flow["load"] = json!({"kind": "sizes", "sizes_bytes": [BYTES as u64]});
    }
    experiment
}

/// Returns the number of bytes that the flows carried, and checks that each completed, but not faster than the path.
fn carried(outcome: &Outcome) -> f64 {
    let rows = outcome.rows("flows");
    for row in &rows {
        assert_eq!((&row["completed"], number(&row["acked_bytes"])), (&Field::Bool(true), BYTES), "{row:?}");
        assert!(number(&row["goodput_bps"]) < 9.7e6, "{row:?}");
    }
    BYTES * rows.len() as f64
}

fn outcome(experiment: Value) -> Outcome {
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    Outcome::new(bench, &output)
}

#[test]
fn algorithms_available_only_in_the_guest_send_to_the_host_machine() {
    if !is_available() {
        return;
    }
    // The machine's own kernel may lack Vegas; it sends no data in this test.
    let outcome = outcome(sized(&[("large", "vegas"), ("other", "bbr")]));
    carried(&outcome);
    // The path takes 20 ms, and the processor may be slow.
    let least_us = number(&outcome.flow("large")[0]["rtt_min_us"]);
    assert!((20_000.0..60_000.0).contains(&least_us), "{least_us} us");
    assert!(!outcome.rows("samples").is_empty() && !outcome.rows("state").is_empty());
    let measured = &outcome.events("finished")[0]["measured"];
    assert!(measured["guest_clock_drift_ppm"].as_f64().unwrap().abs() < 2000.0, "{measured}");
    assert!(measured["cpu_share_received"].as_f64().unwrap() > 0.0, "{measured}");
    assert!(measured["host_qdisc_sent_packets"].is_null(), "the scenario names no queue discipline: {measured}");
    let log = fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.contains("qemu-system-x86_64") && log.contains("# in the guest of sender: ip addr add 10.77.1.2/24"));
    let run: Value = serde_json::from_slice(&fs::read(outcome.bench.path("run/run.json")).unwrap()).unwrap();
    let version = run["result_version"].as_str().unwrap();
    assert!(version.contains("in QEMU with tcg") || version.contains("in QEMU with kvm"), "{version}");
}

#[test]
fn a_guest_with_two_processors_sends_on_the_first_and_handles_interrupts_on_the_second() {
    if !is_available() {
        return;
    }
    let mut experiment = sized(&[("large", "cubic")]);
    experiment["hosts"]["sender"]["second_cpu"] = json!(true);
    // The guest exits with an error if its kernel has one processor, or leaves the card's interrupts on the first one.
    let outcome = outcome(experiment);
    carried(&outcome);
    let log = fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.contains("# in the guest of sender: taskset --cpu-list --pid 0 1"), "{log}");
    assert!(log.contains("smp_affinity_list; do echo 1 > $irq"), "{log}");
}

/// Payload of the largest packet, in bytes.
const SEGMENT_BYTES: f64 = 1448.0;

#[test]
fn packets_of_a_guest_pass_through_a_qdisc_available_only_in_its_kernel() {
    if !is_available() {
        return;
    }
    // The machine's own kernel may lack CAKE.
    let mut experiment = sized(&[("large", "cubic")]);
    experiment["hosts"]["sender"]["qdisc"] = json!("cake");
    let outcome = outcome(experiment);
    let acked = carried(&outcome);
    let measured = &outcome.events("finished")[0]["measured"];
    let sent = measured["host_qdisc_sent_packets"].as_f64().expect("it has counted");
    assert!(sent >= acked / SEGMENT_BYTES, "{sent} packets for {acked} bytes");
    let log = fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.contains("# in the guest of sender: tc qdisc replace dev eth0 root handle 1: cake"), "{log}");
}

fn module(name: &str) -> Option<PathBuf> {
    fn find(folder: &Path, file: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let has = |path: &&PathBuf| path.file_name().is_some_and(|name| name == file);
        files.iter().find(has).cloned().or_else(|| folders.iter().find_map(|folder| find(folder, file)))
    }
    find(&kernel().1, &format!("tcp_{name}.ko"))
}

#[test]
fn a_custom_module_is_loaded_and_one_with_another_or_an_existing_name_is_reported() {
    if !is_available() {
        return;
    }
    let Some(path) = module("westwood") else {
        not_tested("a module of one's own", "the kernel's modules are compressed");
        return;
    };
    use sha2::Digest as _;
    let sha256: String = sha2::Sha256::digest(fs::read(&path).unwrap()).iter().map(|it| format!("{it:02x}")).collect();
    let with_name = |name: &str| {
        let mut experiment = experiment();
        experiment["flows"] = json!([flow("large", name)]);
        experiment["flows"][0]["cc_file"] = json!({"kind": "module", "path": path, "sha256": sha256});
        experiment["duration_ns"] = json!(500_000_000);
        experiment
    };
    let mut wrong = with_name("mine");
    wrong["experiment"] = json!(1);
    // Distributions build CUBIC in.
    let mut existing = with_name("cubic");
    existing["experiment"] = json!(2);
    let bench = bench([with_name("westwood"), wrong, existing]);
    let output = bench.run("run", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let rows = crate::stage::rows(&bench.path("run"), "flows");
    assert!(rows.len() == 1 && acked_bytes(&rows) > 0.0, "{rows:?}");
    let events = crate::common::events(&output);
    let failures = events.iter().filter(|event| event["event"] == "failed");
    let messages: Vec<&str> = failures.map(|event| event["message"].as_str().unwrap()).collect();
    let has = |words: &[&str]| messages.iter().any(|message| words.iter().all(|word| message.contains(word)));
    assert!(has(&["`mine`", "does not register this name", "westwood"]), "{messages:?}");
    assert!(has(&["has an algorithm `cubic` already"]), "{messages:?}");
}

fn send_with(cc: &str, params: Value) {
    if !is_available() {
        return;
    }
    let vm = capabilities(&mut Command::new(ENGINE));
    if !vm["cc"].as_array().unwrap().iter().any(|algorithm| algorithm["name"] == cc) {
        not_tested(&format!("{cc} in guests"), "thalweg-agent is not beside thalweg-engine, nor on the PATH");
        return;
    }
    let mut experiment = sized(&[("large", cc)]);
    experiment["flows"][0]["cc_params"] = params;
    carried(&outcome(experiment));
}

#[test]
fn the_agent_loads_bbr_cpu_in_guests() {
    send_with("bbr_cpu", json!({"rule": 0.0}));
}

#[test]
fn the_agent_loads_bbr3_in_guests() {
    send_with("bbr3", json!({}));
}

#[test]
fn the_agent_loads_bbr3_with_a_rule_in_guests() {
    send_with("bbr3", json!({"cpu_rule": 2.0}));
}

#[test]
fn the_agent_loads_bbr_with_parameters_in_guests() {
    send_with("bbr_tuned", json!({"probe_gain": 1.5, "probe_clock": 1.0, "probe_interval_ms": 300.0}));
}
