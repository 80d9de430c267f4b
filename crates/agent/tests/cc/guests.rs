//! What the agent loads inside guests of the engine `vm`.

use crate::common::left_out;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The congestion window that bpf/cc/test/fixed_window.bpf.c gives every connection.
const WINDOW_PACKETS: u64 = 10;

/// The engine that the build has put beside the agent; nothing where it cannot have guests here.
fn engine() -> Option<PathBuf> {
    let engine = Path::new(env!("CARGO_BIN_EXE_thalweg-agent")).with_file_name("thalweg-engine");
    let why_not = match Command::new(&engine).args(["capabilities", "--json"]).output() {
        Err(_) => Some("thalweg-engine is not built".to_owned()),
        Ok(output) => {
            let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let vm = told["engines"].as_array().expect("a list").iter().find(|one| one["name"] == "vm").expect("vm");
            vm["why_not"].as_str().map(str::to_owned)
        }
    };
    let Some(why) = why_not else { return Some(engine) };
    left_out("eBPF in guests", &why);
    None
}

/// One flow without end, of an algorithm that is loaded from a file, over 10 Mbit/s and 20 ms.
fn plan(name: &str, object: &str) -> Value {
    let sha256: String =
        Sha256::digest(fs::read(object).expect("the object")).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut experiment: Value =
        serde_json::from_str(include_str!("../../../engine/tests/data/experiment.json")).expect("JSON");
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
    json!({
        "format": 1, "engine": "vm", "name": "own", "about": "", "source": "", "scenario_toml": "", "traces": {},
        "experiments": [experiment],
    })
}

#[test]
fn a_users_own_algorithm_sends_from_a_guest() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (plan_file, out) = (folder.path().join("plan.json"), folder.path().join("run"));
    fs::write(&plan_file, plan("fixed_window", concat!(env!("OUT_DIR"), "/fixed_window.bpf.o")).to_string()).unwrap();
    let mut command = Command::new(engine);
    command.arg("run").arg("--plan").arg(plan_file).arg("--out").arg(&out).stdin(Stdio::null());
    let output = command.output().expect("the engine");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let files = fs::read_dir(out.join("samples")).unwrap();
    let windows: Vec<u64> = files.flat_map(|file| windows(&file.unwrap().path())).collect();
    assert!(!windows.is_empty(), "it was sampled");
    assert!(windows.iter().all(|window| *window == WINDOW_PACKETS), "{windows:?}");
}

/// The congestion windows in a table of samples.
fn windows(file: &Path) -> Vec<u64> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).expect("a table");
    let of_row = |row: Row| match row.get_column_iter().find(|(name, _)| *name == "cwnd_packets") {
        Some((_, Field::ULong(window))) => *window,
        other => panic!("no window: {other:?}"),
    };
    reader.get_row_iter(None).unwrap().map(|row| of_row(row.unwrap())).collect()
}
