//! Runs leave no process and no directory behind, however they end.

use super::{bench, is_available};
use crate::common::{Bench, Running, names};
use crate::stage::{as_ordinary_user, experiment, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the command of the engine, with a separate directory for temporary files, so that leftovers can be detected.
fn run(bench: &Bench) -> Command {
    let folder = bench.path("tmp");
    fs::create_dir_all(&folder).unwrap();
    let mut command = bench.run("run", &[]);
    command.env("TMPDIR", folder);
    command
}

fn long() -> Bench {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(600_000_000_000_000_u64);
    experiment["sample_interval_ns"] = json!(0);
    bench([experiment])
}

/// Returns the processes whose command line or environment names a folder: the engine, and the processes of the guest.
fn processes(folder: &Path) -> Vec<u32> {
    let name = folder.as_os_str().as_encoded_bytes();
    let has = |file: PathBuf| fs::read(file).is_ok_and(|bytes| bytes.windows(name.len()).any(|part| part == name));
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| has(format!("/proc/{pid}/environ").into()) || has(format!("/proc/{pid}/cmdline").into()))
        .collect()
}

/// Waits until the heartbeat of the guest shows that the hosts are running.
fn wait_for_work(folder: &Path) {
    wait_for("the guest is at work", || {
        let guests = fs::read_dir(folder).unwrap().flatten();
        let mut pulses = guests.filter_map(|guest| fs::metadata(guest.path().join("pulse")).ok());
        pulses.any(|pulse| pulse.len() > 20).then_some(())
    });
}

fn wait_until_gone(folder: &Path) {
    wait_for("processes are gone", || processes(folder).is_empty().then_some(()));
    wait_for("folders are gone", || fs::read_dir(folder).unwrap().next().is_none().then_some(()));
}

#[test]
fn a_run_leaves_nothing_behind() {
    if !is_available() {
        return;
    }
    let bench = bench([experiment()]);
    let output = run(&bench).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(processes(&bench.path("tmp")), [0; 0]);
    assert!(fs::read_dir(bench.path("tmp")).unwrap().next().is_none(), "folders are left");
}

#[test]
fn ctrl_c_ends_a_running_experiment() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    running.wait_for("interrupted", 1);
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    // Checked immediately: the engine itself waits for them.
    assert_eq!(processes(&bench.path("tmp")), [0; 0]);
    assert!(fs::read_dir(bench.path("tmp")).unwrap().next().is_none(), "folders are left");
    assert_eq!(names(&crate::common::journal(&bench.path("run"))), ["started", "interrupted"]);
}

#[test]
fn a_killed_engine_leaves_nothing_behind() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    assert!(processes(&bench.path("tmp")).len() > 3, "supervisor, kernel, programs");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait_until_gone(&bench.path("tmp"));
}

/// Returns the supervisor of the guest below `folder`: the name of its directory contains its process id.
fn supervisor(folder: &Path) -> Pid {
    let guest = fs::read_dir(folder).unwrap().flatten().next().unwrap().file_name().into_string().unwrap();
    let id = guest.trim_start_matches("thalweg-guest-").split('-').next().unwrap();
    Pid::from_raw(id.parse().unwrap()).unwrap()
}

#[test]
fn a_killed_supervisor_leaves_nothing_behind() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(supervisor(&bench.path("tmp")), Signal::KILL).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(1));
    wait_until_gone(&bench.path("tmp"));
}

#[test]
fn ctrl_c_ends_an_experiment_whose_supervisor_is_stopped() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(supervisor(&bench.path("tmp")), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    wait_until_gone(&bench.path("tmp"));
}

#[test]
fn an_unprivileged_user_can_run_experiments() {
    if !is_available() {
        return;
    }
    let bench = bench([experiment()]);
    let Some(mut command) = as_ordinary_user(&bench) else { return };
    // HOME belongs to another user, so the path of the kernel is passed explicitly.
    let kernel = std::env::var_os("THALWEG_UML_KERNEL").map_or_else(default_kernel, PathBuf::from);
    let copy = bench.path("kernel");
    fs::create_dir(&copy).unwrap();
    for file in ["linux", "kernel.json"] {
        fs::copy(kernel.join(file), copy.join(file)).unwrap();
    }
    // If the test runs as root, this user can write neither beside the kernel nor to a cache.
    let output = command.env("THALWEG_UML_KERNEL", &copy).env("HOME", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(crate::stage::rows(&bench.path("run"), "flows").len(), 1);
}

fn default_kernel() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    cache.join("thalweg/uml/current")
}
