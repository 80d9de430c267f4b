//! A tuning agent between two hosts whose default is reno.

use crate::common::Namespace;
use crate::rows::Row;
use crate::stage::{Agent, Stage};
use rustix::net::sockopt;
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::process::Command;

/// CUBIC for all connections. BBR would be excluded while the host is short of CPU.
pub const ALL_CUBIC: &str = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\ncubic = 1.0\n";

/// Returns two connected hosts.
pub fn hosts() -> (Namespace, Namespace) {
    let hosts = Namespace::pair();
    for host in [&hosts.0, &hosts.1] {
        host.output(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"]);
    }
    hosts
}

/// The command that tunes with these settings.
pub fn command(stage: &Stage, settings: &str, options: &[&str]) -> Vec<String> {
    let file = stage.path("tune.toml");
    fs::write(&file, settings).expect("a file");
    let (file, state) = (file.display().to_string(), stage.path("tune.json").display().to_string());
    let mut all = vec!["--config", &file];
    if !options.contains(&"--state") {
        all.extend(["--state", &state]);
    }
    if !options.contains(&"--arms") {
        // The default of the machine must be among the arms.
        all.extend(["--arms", "reno,cubic,bbr"]);
    }
    // No watchdog stays behind when a test kills the agent.
    if !options.contains(&"--grace") {
        all.extend(["--grace", "0s"]);
    }
    all.extend(options);
    stage.line("tune", &all)
}

/// Starts tuning.
pub fn tune(stage: &Stage, settings: &str, options: &[&str]) -> Agent {
    let line = command(stage, settings, options);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    stage.started(&line, "tuning ")
}

/// The algorithm of a socket.
pub fn cc(socket: &TcpStream) -> String {
    sockopt::tcp_congestion(socket).expect("it has one")
}

/// Returns the row of a closed connection, at the end that accepted it ("in") or opened it ("out").
pub fn closed<'a>(rows: &'a [Row], direction: &str) -> &'a Row {
    let mut closed = rows.iter().filter(|row| row.text("kind") == "close" && row.text("direction") == direction);
    closed.next().unwrap_or_else(|| panic!("no row: {rows:?}"))
}

/// The reason why a row is not part of the comparison.
pub fn because(row: &Row) -> &str {
    row.text("untouched_because")
}

/// Returns the output of `tune status --json` or `tune explain --json`.
pub fn query_json(stage: &Stage, question: &[&str]) -> Value {
    let line = ["tune"].iter().chain(question).chain(&["--json", "--socket"]);
    let output = Command::new(stage.agent_file()).args(line).arg(stage.path("agent.sock")).output().expect("it starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the number of opened connections with this decision and this chosen algorithm.
pub fn decided(stage: &Stage, reason: &str, cc: Option<&str>) -> u64 {
    let status = query_json(stage, &["status"]);
    let all = status["decided"].as_array().expect("a list").iter();
    all.filter(|decided| decided["reason"] == reason && decided["cc"].as_str() == cc)
        .map(|decided| decided["connections"].as_u64().expect("a count"))
        .sum()
}

/// Returns the selection columns of a row.
pub fn choice(row: &Row) -> [&str; 4] {
    ["assignment", "assigned_cc", "cc_at_open", "cc"].map(|column| row.text(column))
}
