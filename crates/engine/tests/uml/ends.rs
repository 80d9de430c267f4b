//! However a run ends, nothing is left of it: no process, no folder.

use crate::common::{Bench, Running, names};
use crate::stage::{as_ordinary_user, experiment, wait_for};
use crate::{bench, is_available};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engine in a bench of its own folder for temporary files, so that what it leaves there can be seen.
fn run(bench: &Bench) -> Command {
    let folder = bench.path("tmp");
    fs::create_dir_all(&folder).unwrap();
    let mut command = bench.run("run", &[]);
    command.env("TMPDIR", folder);
    command
}

/// A bench with an experiment that takes longer than anybody waits.
fn long() -> Bench {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(600_000_000_000_000_u64);
    experiment["sample_interval_ns"] = json!(0);
    bench([experiment])
}

/// Processes whose command line or environment names a folder: the keeper, the kernel, its programs.
fn processes(folder: &Path) -> Vec<u32> {
    let name = folder.as_os_str().as_encoded_bytes();
    let has = |file: PathBuf| fs::read(file).is_ok_and(|bytes| bytes.windows(name.len()).any(|part| part == name));
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| has(format!("/proc/{pid}/environ").into()) || has(format!("/proc/{pid}/cmdline").into()))
        .collect()
}

/// Waits until the hosts are at work, as the pulse of the guest shows.
fn wait_for_work(folder: &Path) {
    wait_for("the guest is at work", || {
        let guests = fs::read_dir(folder).unwrap().flatten();
        let mut pulses = guests.filter_map(|guest| fs::metadata(guest.path().join("pulse")).ok());
        pulses.any(|pulse| pulse.len() > 20).then_some(())
    });
}

/// Waits until nothing of a run is left.
fn wait_until_gone(folder: &Path) {
    wait_for("processes are gone", || processes(folder).is_empty().then_some(()));
    wait_for("folders are gone", || fs::read_dir(folder).unwrap().next().is_none().then_some(()));
}

#[test]
fn nothing_is_left_after_a_run() {
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
fn ctrl_c_ends_an_experiment_in_its_middle() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    running.wait_for("interrupted", 1);
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    // At once: the engine waits for them itself.
    assert_eq!(processes(&bench.path("tmp")), [0; 0]);
    assert!(fs::read_dir(bench.path("tmp")).unwrap().next().is_none(), "folders are left");
    assert_eq!(names(&crate::common::journal(&bench.path("run"))), ["started", "interrupted"]);
}

#[test]
fn nothing_is_left_of_a_killed_engine() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    assert!(processes(&bench.path("tmp")).len() > 3, "keeper, kernel, programs");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait_until_gone(&bench.path("tmp"));
}

/// The process that keeps the guest below `folder`: the folder's name has its id.
fn keeper(folder: &Path) -> Pid {
    let guest = fs::read_dir(folder).unwrap().flatten().next().unwrap().file_name().into_string().unwrap();
    let id = guest.trim_start_matches("thalweg-guest-").split('-').next().unwrap();
    Pid::from_raw(id.parse().unwrap()).unwrap()
}

#[test]
fn nothing_is_left_of_a_killed_keeper() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(keeper(&bench.path("tmp")), Signal::KILL).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(1));
    wait_until_gone(&bench.path("tmp"));
}

#[test]
fn ctrl_c_ends_an_experiment_whose_keeper_is_stopped() {
    if !is_available() {
        return;
    }
    let bench = long();
    let mut running = Running::start(run(&bench));
    wait_for_work(&bench.path("tmp"));
    kill_process(keeper(&bench.path("tmp")), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(130));
    wait_until_gone(&bench.path("tmp"));
}

#[test]
fn an_ordinary_user_runs_experiments_too() {
    if !is_available() {
        return;
    }
    let bench = bench([experiment()]);
    let Some(mut command) = as_ordinary_user(&bench) else { return };
    // Whose home is not theirs: the kernel is told.
    let kernel = std::env::var_os("THALWEG_UML_KERNEL").map_or_else(default_kernel, PathBuf::from);
    let copy = bench.path("kernel");
    fs::create_dir(&copy).unwrap();
    for file in ["linux", "kernel.json"] {
        fs::copy(kernel.join(file), copy.join(file)).unwrap();
    }
    // Nor can they write beside it, or in a cache.
    let output = command.env("THALWEG_UML_KERNEL", &copy).env("HOME", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(crate::stage::rows(&bench.path("run"), "flows").len(), 1);
}

fn default_kernel() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    cache.join("thalweg/uml/current")
}
