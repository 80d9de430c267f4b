//! Runs leave nothing behind, however they end.

use crate::common::{Bench, Running, events, journal, names};
use crate::stage::{Outcome, as_ordinary_user, bench, children, experiment, hosts, is_available};
use crate::stage::{namespaces, wait_for, wait_until_gone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::process::Child;

const HOSTS: usize = 3;

fn long() -> Bench {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(600_000_000_000_u64);
    bench([experiment])
}

fn wait_for_traffic(hosts: &[u32]) {
    wait_for("traffic", || {
        let received = hosts.iter().filter_map(|host| fs::read_to_string(format!("/proc/{host}/net/snmp")).ok());
        let segments = received.filter_map(|text| {
            let line = text.lines().filter(|line| line.starts_with("Tcp:")).nth(1)?;
            line.split(' ').nth(10)?.parse::<u64>().ok()
        });
        (segments.max()? > 100).then_some(())
    });
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    wait_for("the engine ends", || child.try_wait().unwrap())
}

#[test]
fn a_run_leaves_nothing_behind() {
    if !is_available() {
        return;
    }
    let bench = bench([experiment()]);
    let mut running = Running::start(bench.run("run", &[]));
    let engine = running.child.id();
    let hosts = hosts(engine, HOSTS);
    let pids: Vec<u32> = children(engine).into_keys().collect();
    let namespaces = namespaces(hosts.iter().copied());
    assert_eq!(namespaces.len(), HOSTS, "a namespace of its own for each host");
    running.wait_for("done", 1);
    assert!(wait(&mut running.child).success());
    wait_until_gone(&pids, &namespaces);
}

#[test]
fn ctrl_c_during_an_experiment_ends_it_and_removes_the_network() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(bench.run("run", &[]));
    running.wait_for("started", 1);
    let hosts = hosts(running.child.id(), HOSTS);
    wait_for_traffic(&hosts);
    let pids: Vec<u32> = children(running.child.id()).into_keys().collect();
    let namespaces = namespaces(hosts);
    signal(running.child.id(), Signal::INT);
    running.wait_for("interrupted", 1);
    assert_eq!(wait(&mut running.child).code(), Some(130));
    // Checked immediately: the engine itself waits for its hosts.
    assert!(pids.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()), "processes outlive the engine");
    wait_until_gone(&pids, &namespaces);
    assert_eq!(names(&journal(&bench.path("run"))), ["started", "interrupted"]);
}

#[test]
fn ctrl_c_during_network_setup_ends_cleanly() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(bench.run("run", &[]));
    running.wait_for("started", 1);
    signal(running.child.id(), Signal::INT);
    running.wait_for("interrupted", 1);
    assert_eq!(wait(&mut running.child).code(), Some(130));
}

fn kill_in_the_middle_and_go_on(bench: &Bench, start: impl Fn() -> std::process::Command) {
    let mut running = Running::start(start());
    running.wait_for("started", 1);
    let hosts = hosts(running.child.id(), HOSTS);
    wait_for_traffic(&hosts);
    let pids: Vec<u32> = children(running.child.id()).into_keys().collect();
    let namespaces = namespaces(hosts);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait_until_gone(&pids, &namespaces);
    let output = start().output().unwrap();
    assert_eq!(names(&events(&output)).first_chunk(), Some(&["plan", "started"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(crate::stage::rows(&bench.path("run"), "flows").len(), 1);
}

#[test]
fn a_killed_run_leaves_nothing_behind_and_the_same_command_resumes() {
    if is_available() {
        let mut experiment = experiment();
        experiment["duration_ns"] = json!(3_000_000_000_u64);
        let bench = bench([experiment]);
        kill_in_the_middle_and_go_on(&bench, || bench.run("run", &[]));
    }
}

#[test]
fn a_killed_run_of_an_unprivileged_user_leaves_nothing_behind() {
    if is_available() {
        let mut experiment = experiment();
        experiment["duration_ns"] = json!(3_000_000_000_u64);
        let bench = bench([experiment]);
        if as_ordinary_user(&bench).is_some() {
            kill_in_the_middle_and_go_on(&bench, || as_ordinary_user(&bench).unwrap());
        }
    }
}

#[test]
fn a_host_that_dies_fails_its_experiment_with_the_reason_and_the_next_one_runs() {
    if !is_available() {
        return;
    }
    let mut doomed = experiment();
    doomed["duration_ns"] = json!(600_000_000_000_u64);
    let mut next = experiment();
    next["repetition"] = json!(1);
    let bench = bench([doomed, next]);
    let mut command = bench.run("run", &[]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let hosts = hosts(child.id(), HOSTS);
    wait_for_traffic(&hosts);
    signal(hosts[0], Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!((&failed["code"], &failed["repetition"]), (&json!("host-died"), &json!(0)));
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("signal: 9") && message.contains("the host `"), "{message}");
    let finished = events.iter().find(|event| event["event"] == "finished").unwrap();
    assert_eq!(finished["repetition"], 1);
    assert_eq!(crate::stage::rows(&bench.path("run"), "flows").len(), 1);
}

#[test]
fn an_experiment_ends_with_its_last_flow_before_its_duration() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(600_000_000_000_u64);
    experiment["flows"][0]["load"] = json!({"kind": "sizes", "sizes_bytes": [100_000]});
    let outcome = Outcome::of(experiment);
    let lasted = outcome.events("finished")[0]["simulated_s"].as_f64().unwrap();
    assert!((0.08..60.0).contains(&lasted), "{lasted} s");
}
