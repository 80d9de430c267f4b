//! Plans to run, the binary that runs them, and access to its output.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

pub const ENGINE: &str = env!("CARGO_BIN_EXE_thalweg-engine");

pub fn experiment() -> Value {
    serde_json::from_str(include_str!("../../data/experiment.json")).unwrap()
}

pub fn plan(repetitions: u64) -> Value {
    plan_of((0..repetitions).map(|repetition| {
        let mut experiment = experiment();
        experiment["repetition"] = json!(repetition);
        experiment["seed"] = json!(100 + repetition);
        experiment
    }))
}

pub fn endless_plan() -> Value {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(1_000_000_000_000_000_u64);
    experiment["sample_interval_ns"] = json!(0);
    experiment["forward"]["capacity"]["steps"][0]["rate_bps"] = json!(10_000_000_000_u64);
    experiment["flows"][0]["load"] = json!({"kind": "unlimited"});
    plan_of([experiment])
}

pub fn plan_of(experiments: impl IntoIterator<Item = Value>) -> Value {
    json!({
        "format": 1,
        "engine": "sim",
        "name": "small",
        "about": "",
        "source": "",
        "scenario_toml": "",
        "traces": {},
        "experiments": experiments.into_iter().collect::<Vec<_>>(),
    })
}

pub struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    pub fn with(plan: &Value) -> Bench {
        let bench = Bench { directory: tempfile::tempdir().unwrap() };
        fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn run(&self, out: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(ENGINE);
        command.arg("run").arg("--plan").arg(self.path("plan.json")).arg("--out").arg(self.path(out));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run_whole(&self, out: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let output = self.run(out, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        tables(&self.path(out))
    }
}

pub fn tables(run: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut tables = BTreeMap::new();
    for table in ["flows", "samples", "state", "queue"] {
        for entry in fs::read_dir(run.join(table)).unwrap() {
            let path = entry.unwrap().path();
            tables.insert(path.strip_prefix(run).unwrap().to_owned(), fs::read(&path).unwrap());
        }
    }
    tables
}

pub fn events(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn journal(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

pub struct Running {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    pub fn wait_for(&mut self, name: &str, mut count: usize) {
        while count > 0 {
            let line = self.lines.next().unwrap_or_else(|| panic!("the engine ended before {name}")).unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            count -= usize::from(event["event"] == name);
        }
    }
}
