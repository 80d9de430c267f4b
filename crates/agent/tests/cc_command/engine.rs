//! Experiments that `thalweg-engine` runs for these tests.

use crate::common::left_out;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Returns the path of `thalweg-engine`. If its engine `name` cannot run, skips `what` and returns `None`.
pub fn engine(name: &str, what: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_thalweg-agent")).with_file_name("thalweg-engine");
    let why_not = match Command::new(&program).args(["capabilities", "--json"]).output() {
        Err(_) => Some("thalweg-engine is not built".to_owned()),
        Ok(output) => {
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let entry = report["engines"].as_array().expect("a list").iter().find(|entry| entry["name"] == name);
            entry.expect("an engine")["why_not"].as_str().map(str::to_owned)
        }
    };
    let Some(why) = why_not else { return Some(program) };
    left_out(what, &why);
    None
}

/// Returns the experiment of the engine's own tests.
pub fn experiment() -> Value {
    serde_json::from_str(include_str!("../../../engine/tests/data/experiment.json")).expect("JSON")
}

/// Returns an experiment with an unlimited flow over 20 Mbit/s and 40 ms.
pub fn bulk_flow(cc: &str, seconds: u64, buffer_bytes: u64, loss: f64) -> Value {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(seconds * 1_000_000_000);
    experiment["rtt_ns"] = json!(40_000_000);
    experiment["forward"]["capacity"]["steps"][0]["rate_bps"] = json!(20_000_000);
    experiment["forward"]["buffer"]["bytes"] = json!(buffer_bytes);
    experiment["forward"]["loss"]["ratio"] = json!(loss);
    for direction in ["forward", "reverse"] {
        experiment[direction]["delay_ns"] = json!(20_000_000);
    }
    experiment["flows"].as_array_mut().expect("a list").truncate(1);
    experiment["flows"][0]["cc"] = json!(cc);
    experiment["flows"][0]["load"] = json!({"kind": "unlimited"});
    experiment
}

/// Returns a plan of experiments for the engine `name`.
pub fn with_engine(name: &str, experiments: &[Value]) -> Value {
    json!({
        "format": 1, "engine": name, "name": "own", "about": "", "source": "", "scenario_toml": "", "traces": {},
        "experiments": experiments,
    })
}

/// A run directory that is removed when the test ends.
pub struct Run {
    folder: TempDir,
}

/// Runs a plan to its end.
pub fn run(engine: &Path, plan: &Value) -> Run {
    let run = Run { folder: tempfile::tempdir().unwrap() };
    let (plan_file, out) = (run.folder.path().join("plan.json"), run.folder.path().join("run"));
    fs::write(&plan_file, plan.to_string()).unwrap();
    let mut command = Command::new(engine);
    command.arg("run").arg("--plan").arg(plan_file).arg("--out").arg(&out).stdin(Stdio::null());
    let output = command.output().expect("the engine");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    run
}

impl Run {
    /// Returns the rows of all files of a table.
    pub fn table(&self, name: &str) -> Vec<Row> {
        let files = fs::read_dir(self.folder.path().join("run").join(name)).unwrap();
        let rows = |path: PathBuf| {
            let reader = SerializedFileReader::new(File::open(path).unwrap()).expect("a table");
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect::<Vec<Row>>()
        };
        files.flat_map(|file| rows(file.unwrap().path())).collect()
    }
}
