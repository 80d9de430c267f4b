//! Experiments for a real kernel, with access to their results and leftovers.

use crate::common::{self, Bench, ENGINE};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether the engine can run here. In CI it must.
pub fn is_available() -> bool {
    let output = Command::new(ENGINE).args(["capabilities", "--json"]).output().unwrap();
    let capabilities: Value = serde_json::from_slice(&output.stdout).unwrap();
    let engines = capabilities["engines"].as_array().unwrap();
    let kernel = engines.iter().find(|engine| engine["name"] == "kernel").unwrap();
    kernel["available"] == true || not_tested("the engine kernel", kernel["why_not"].as_str().unwrap_or_default())
}

/// Reports a skipped test with the reason. Returns false, so that a test can return.
pub fn not_tested(what: &str, why: &str) -> bool {
    assert!(std::env::var("THALWEG_CI").as_deref() != Ok("1"), "{what} must be tested, but: {why}");
    // Written directly, because the test harness captures the output of print macros.
    let _ = writeln!(std::io::stderr(), "\nNOT TESTED: {what}: {why}");
    false
}

pub fn has(program: &str) -> bool {
    let lookup = Command::new("sh").args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}")]).output();
    lookup.unwrap().status.success()
}

/// Returns an experiment with an unlimited CUBIC flow over 10 Mbit/s and 20 ms, and a queue of 1.5 bandwidth-delay
/// products.
pub fn experiment() -> Value {
    let mut experiment = common::experiment();
    experiment["sweep"] = json!({});
    experiment["duration_ns"] = json!(1_500_000_000_u64);
    experiment["start_jitter_ns"] = json!(0);
    experiment["forward"]["loss"]["ratio"] = json!(0.0);
    experiment["forward"]["buffer"]["bytes"] = json!(37_500);
    experiment["hosts"]["sender"]["delay_jitter_ns"] = json!(0);
    experiment["hosts"]["receiver"]["delay_jitter_ns"] = json!(0);
    experiment["flows"] = json!([flow("large", "cubic")]);
    experiment
}

pub fn flow(name: &str, cc: &str) -> Value {
    let mut flow = common::experiment()["flows"][0].clone();
    flow["name"] = json!(name);
    flow["cc"] = json!(cc);
    flow["start_ns"] = json!(0);
    flow["load"] = json!({"kind": "unlimited"});
    flow
}

pub fn programs(name: &str, port: u16, server: &[&str], client: &[&str]) -> Value {
    let mut flow = flow(name, "cubic");
    flow["program"] = json!({
        "server": server, "client": client, "ready": {"kind": "listening"}, "port": port,
        "client_sends": false, "qlog": false, "folder": "/",
    });
    flow
}

pub fn bench(experiments: impl IntoIterator<Item = Value>) -> Bench {
    let mut plan = common::plan_of(experiments);
    plan["engine"] = json!("kernel");
    Bench::with(&plan)
}

pub struct Outcome {
    pub bench: Bench,
    pub events: Vec<Value>,
}

impl Outcome {
    pub fn of(experiment: Value) -> Outcome {
        let bench = bench([experiment]);
        let output = bench.run("run", &[]).output().unwrap();
        Outcome::new(bench, &output)
    }

    pub fn new(bench: Bench, output: &Output) -> Outcome {
        let events = common::events(output);
        assert_eq!(output.status.code(), Some(0), "{events:#?} {}", String::from_utf8_lossy(&output.stderr));
        Outcome { bench, events }
    }

    pub fn events(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == name).collect()
    }

    pub fn rows(&self, table: &str) -> Vec<BTreeMap<String, Field>> {
        rows(&self.bench.path("run"), table)
    }

    pub fn flow(&self, name: &str) -> Vec<BTreeMap<String, Field>> {
        self.rows("flows").into_iter().filter(|row| row["flow"] == text(name)).collect()
    }
}

pub fn rows(run: &Path, table: &str) -> Vec<BTreeMap<String, Field>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(run.join(table)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            let of = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
            rows.extend(reader.get_row_iter(None).unwrap().map(|row| of(row.unwrap())));
        }
    }
    rows
}

pub fn text(text: &str) -> Field {
    Field::Str(text.to_owned())
}

pub fn number(field: &Field) -> f64 {
    match field {
        Field::ULong(value) => *value as f64,
        Field::Double(value) => *value,
        other => panic!("not a number: {other}"),
    }
}

pub fn acked_bytes(rows: &[BTreeMap<String, Field>]) -> f64 {
    rows.iter().map(|row| number(&row["acked_bytes"])).sum()
}

/// Waits until `look` returns a value; `what` describes it in the message of a timeout.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = look() {
            return result;
        }
        assert!(Instant::now() < give_up, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

pub fn children(pid: u32) -> BTreeMap<u32, String> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |child: u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        let words = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?.replace('\0', " ");
        (parent == pid).then_some((child, words))
    };
    pids.filter_map(of).collect()
}

pub fn hosts(pid: u32, count: usize) -> Vec<u32> {
    wait_for("hosts", || {
        let hosts: Vec<u32> = children(pid)
            .into_iter()
            .filter(|(_, words)| words.trim_end().ends_with("thalweg-engine host") && !words.starts_with("nsenter"))
            .map(|(child, _)| child)
            .collect();
        (hosts.len() == count).then_some(hosts)
    })
}

pub fn namespaces(pids: impl IntoIterator<Item = u32>) -> BTreeSet<PathBuf> {
    pids.into_iter().filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok()).collect()
}

pub fn wait_until_gone(pids: &[u32], namespaces: &BTreeSet<PathBuf>) {
    wait_for("processes are gone", || {
        pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}/ns/net")).exists() || is_zombie(*pid)).then_some(())
    });
    wait_for("namespaces are empty", || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut links = all.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
        (!links.any(|link| namespaces.contains(&link))).then_some(())
    });
}

fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// Returns `thalweg-engine run` of the plan into `run` as an unprivileged user; `None` if that is impossible, because
/// this user is root and `setpriv` is missing.
pub fn as_ordinary_user(bench: &Bench) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        return Some(bench.run("run", &[]));
    }
    if !has("setpriv") {
        not_tested("the engine kernel without root", "no setpriv (package util-linux)");
        return None;
    }
    // Files of the test are accessible only to their owner.
    let engine = bench.path("thalweg-engine");
    fs::copy(ENGINE, &engine).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(engine);
    command.arg("run").arg("--plan").arg(bench.path("plan.json")).arg("--out").arg(bench.path("run"));
    command.stdin(Stdio::null());
    Some(command)
}
