//! The end of a tuning agent, and other agents on the same connections.

use crate::common::{assert_refused, run, wait_until};
use crate::stage::Stage;
use crate::traffic::{Pair, connect};
use crate::tuning::{ALL_CUBIC, cc, command, hosts, tune};
use libbpf_rs::ObjectBuilder;
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

fn ccs(pair: &Pair) -> [String; 2] {
    [cc(&pair.server), cc(&pair.client)]
}

/// Returns the number of links to the test's cgroup.
fn attached(stage: &Stage) -> usize {
    let cgroup = fs::metadata(&stage.cgroup).expect("the cgroup").ino();
    let is_ours = |info: &LinkTypeInfo| matches!(info, LinkTypeInfo::Cgroup(link) if link.cgroup_id == cgroup);
    LinkInfoIter::default().filter(|link| is_ours(&link.info)).count()
}

/// Returns the watchdogs of the test's own agent.
fn watchdog_pids(stage: &Stage) -> Vec<u32> {
    let agent = stage.agent_file();
    let is_keeper = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has_word = line.split(|byte| *byte == 0).any(|word| word == b"tune-keeper");
        has_word && fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == agent)
    };
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_keeper).collect()
}

#[test]
fn a_stopped_tuner_leaves_nothing_behind() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    for signal in [Signal::TERM, Signal::INT] {
        let agent = tune(&stage, ALL_CUBIC, &["--grace", "1h"]);
        assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["cubic", "cubic"]);
        assert_eq!((attached(&stage), watchdog_pids(&stage).len()), (1, 1));
        assert_eq!(agent.process.end(signal).0, Some(0));
        assert_eq!((attached(&stage), watchdog_pids(&stage)), (0, vec![]));
        assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["reno", "reno"]);
    }
}

#[test]
fn failing_to_write_learned_state_at_shutdown_is_an_error() {
    let Some(stage) = Stage::new() else { return };
    let folder = stage.path("learned");
    fs::create_dir(&folder).expect("a folder");
    let state = folder.join("tune.json");
    let agent = tune(&stage, ALL_CUBIC, &["--state", &state.display().to_string()]);
    fs::rename(&folder, stage.path("elsewhere")).expect("it is another one's now");
    assert_eq!(agent.process.end(Signal::TERM).0, Some(1));
    assert_eq!(attached(&stage), 0);
}

#[test]
fn after_a_kill_the_kernel_side_continues_for_the_grace_time_and_is_then_removed() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--grace", "3s"]);
    agent.process.end(Signal::KILL);
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["cubic", "cubic"], "the last probabilities are still there");
    wait_until("the default is back", || ccs(&connect(&hosts, "10.9.8.1")) == ["reno", "reno"]);
    wait_until("nothing is left", || attached(&stage) == 0 && watchdog_pids(&stage).is_empty());
}

#[test]
fn after_a_kill_the_status_reports_the_watchdog_until_it_exits() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let status = |options: &[&str]| {
        let mut command = Command::new(stage.agent_file());
        run(command.args(["tune", "status"]).args(options).arg("--socket").arg(stage.path("agent.sock")))
    };
    let agent = tune(&stage, ALL_CUBIC, &["--grace", "1h"]);
    assert!(!status(&[]).out.contains("watchdog"));
    agent.process.end(Signal::KILL);
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["cubic", "cubic"]);
    let done = status(&[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for part in ["the kernel chooses algorithms with the last probabilities for another 59m", "opened        2 chosen"]
    {
        assert!(done.out.contains(part), "{done:?}");
    }
    let watchdog = watchdog_pids(&stage)[0];
    assert!(done.out.contains(&format!("process {watchdog} ")) && done.error.contains("[not-recording]"), "{done:?}");
    let json: Value = serde_json::from_str(&status(&["--json"]).out).expect("JSON");
    assert_eq!(json["watchdog"]["pid"], watchdog);
    assert!(json["watchdog"]["chooses_for_us"].as_u64().is_some_and(|us| us > 3_000_000_000), "{json}");
    // With the socket of another agent, this watchdog is not reported.
    let other = run(Command::new(stage.agent_file()).args(["tune", "status", "--socket", "/run/other.sock"]));
    assert!(other.out.is_empty(), "{other:?}");
    tune(&stage, ALL_CUBIC, &["--grace", "0s"]).end();
    wait_until("nothing is left to report", || status(&[]).out.is_empty());
}

#[test]
fn without_a_grace_time_a_kill_restores_the_default_immediately() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--grace", "0s"]);
    assert_eq!(
        (ccs(&connect(&hosts, "10.9.8.1")), watchdog_pids(&stage)),
        (["cubic", "cubic"].map(str::to_owned), vec![])
    );
    agent.process.end(Signal::KILL);
    wait_until("nothing is left", || attached(&stage) == 0);
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["reno", "reno"]);
}

#[test]
fn a_hung_tuner_is_treated_as_dead() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--grace", "1s"]);
    let pid = rustix::process::Pid::from_raw(agent.process.pid() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    wait_until("the default is back", || ccs(&connect(&hosts, "10.9.8.1")) == ["reno", "reno"]);
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    wait_until("it chooses again", || ccs(&connect(&hosts, "10.9.8.1")) == ["cubic", "cubic"]);
}

#[test]
fn a_new_tuner_replaces_a_killed_one() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--grace", "1h"]);
    agent.process.end(Signal::KILL);
    let before = watchdog_pids(&stage);
    let next = tune(&stage, ALL_CUBIC, &["--grace", "1h"]);
    let after = watchdog_pids(&stage);
    assert_eq!((before.len(), after.len(), attached(&stage)), (1, 1, 1));
    assert_ne!(before, after);
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["cubic", "cubic"]);
    next.process.end(Signal::KILL);
    // A recorder also terminates the watchdog and starts.
    let recorder = stage.record(&[]);
    assert_eq!((watchdog_pids(&stage), attached(&stage)), (vec![], 1));
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["reno", "reno"]);
    recorder.end();
}

#[test]
fn a_second_agent_on_the_same_connections_is_rejected() {
    let Some(stage) = Stage::new() else { return };
    let agent = tune(&stage, ALL_CUBIC, &[]);
    let second = |command: &str| {
        let records = stage.path("others").display().to_string();
        let socket = stage.path("other.sock").display().to_string();
        let options = ["--out", &records, "--socket", &socket];
        if command == "record" { stage.command(&options) } else { self::command(&stage, ALL_CUBIC, &options) }
    };
    for command in ["record", "tune"] {
        let line = second(command);
        let done = run(Command::new(&line[0]).args(&line[1..]));
        assert_refused(&done, 1, "already-recording", "stop the other recorder first");
    }
    drop(agent);
}

/// A compiled program with the name of bpftune's connection tuner.
const CONN_TUNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/conn_tuner.bpf.o"));

#[test]
fn tuning_is_rejected_beside_bpftune_and_a_dry_run_is_allowed() {
    let Some(stage) = Stage::new() else { return };
    let object = ObjectBuilder::default().open_memory(CONN_TUNER).and_then(|object| object.load());
    let object = object.expect("it is loaded");
    let folder = File::open(&stage.cgroup).expect("the cgroup");
    let link =
        object.progs_mut().next().expect("it is there").attach_cgroup(folder.as_raw_fd()).expect("it is attached");
    let line = command(&stage, ALL_CUBIC, &[]);
    let done = run(Command::new(&line[0]).args(&line[1..]));
    assert_refused(&done, 1, "another-tuner", "sudo systemctl stop bpftune");
    assert!(!stage.path("records").exists(), "nothing was made");
    tune(&stage, ALL_CUBIC, &["--dry-run"]).end();
    stage.record(&[]).end();
    let elsewhere = stage.cgroup.with_extension("elsewhere");
    fs::create_dir_all(&elsewhere).expect("a cgroup");
    tune(&stage, ALL_CUBIC, &["--cgroup", &elsewhere.display().to_string()]).end();
    fs::remove_dir(&elsewhere).expect("the cgroup has no processes");
    drop((link, object));
    tune(&stage, ALL_CUBIC, &[]).end();
}
