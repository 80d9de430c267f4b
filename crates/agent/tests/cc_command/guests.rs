//! Algorithms that the agent loads inside guests of the engine `vm`.

use crate::engine::{engine, experiment, run, with_engine};
use parquet::record::{Field, Row};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;

/// The congestion window that bpf/cc/test/fixed_window.bpf.c sets for every connection.
const WINDOW_PACKETS: u64 = 10;

/// Returns a plan with one unlimited flow, whose algorithm is loaded from a file.
fn plan(name: &str, object: &str) -> Value {
    let sha256: String =
        Sha256::digest(fs::read(object).expect("the object")).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(1_500_000_000_u64);
    experiment["forward"]["loss"]["ratio"] = json!(0.0);
    experiment["forward"]["buffer"]["bytes"] = json!(37_500);
    for host in ["sender", "receiver"] {
        experiment["hosts"][host]["delay_jitter_ns"] = json!(0);
    }
    let flow = &mut experiment["flows"][0];
    flow["cc"] = json!(name);
    flow["cc_file"] = json!({"kind": "bpf", "path": object, "sha256": sha256});
    flow["load"] = json!({"kind": "unlimited"});
    experiment["flows"].as_array_mut().expect("a list").truncate(1);
    with_engine("vm", &[experiment])
}

#[test]
fn a_user_supplied_algorithm_sends_from_a_guest() {
    let Some(engine) = engine("vm", "eBPF in guests") else { return };
    let run = run(&engine, &plan("fixed_window", concat!(env!("OUT_DIR"), "/fixed_window.bpf.o")));
    let windows: Vec<u64> = run.table("samples").iter().map(window).collect();
    assert!(!windows.is_empty(), "it was sampled");
    assert!(windows.iter().all(|window| *window == WINDOW_PACKETS), "{windows:?}");
}

fn window(row: &Row) -> u64 {
    match row.get_column_iter().find(|(name, _)| *name == "cwnd_packets") {
        Some((_, Field::ULong(window))) => *window,
        other => panic!("no window: {other:?}"),
    }
}
