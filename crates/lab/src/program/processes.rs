//! Finds the descendants of this process in /proc.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Interval of checks whether processes have exited.
const PAUSE: Duration = Duration::from_millis(5);

/// Timeout for killed processes to exit; an uninterruptible system call delays the exit.
const KILLED: Duration = Duration::from_secs(5);

/// Reaps exited children, including orphans that this process has inherited.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        ended(pid, status);
    }
}

/// Returns the running descendants of this process. As a subreaper, it inherits processes whose parents have exited.
pub(super) fn descendants() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in pids {
        if let Some(parent) = parent_of_living(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut pids = Vec::new();
    let mut next = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        pids.extend(below.iter().filter_map(|pid| Pid::from_raw(*pid)));
        next.extend(below);
    }
    pids
}

/// Returns the parent of a running process. Source: proc_pid_stat(5).
fn parent_of_living(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, which precedes these fields, may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.next()?.parse().ok() }
}

/// Sends a signal to all descendants.
pub(super) fn signal_all(signal: Signal) {
    for pid in descendants() {
        // The process may have exited meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// Kills all descendants, including those that are started meanwhile.
pub(super) fn kill_all(mut ended: impl FnMut(Pid, WaitStatus)) {
    let give_up = Instant::now() + KILLED;
    loop {
        signal_all(Signal::KILL);
        reap(&mut ended);
        if descendants().is_empty() || Instant::now() > give_up {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Waits until there are no descendants; returns false after the timeout.
pub(super) fn wait_for_none(patience: Duration, mut ended: impl FnMut(Pid, WaitStatus)) -> bool {
    let give_up = Instant::now() + patience;
    loop {
        reap(&mut ended);
        if descendants().is_empty() {
            return true;
        }
        if Instant::now() > give_up {
            return false;
        }
        thread::sleep(PAUSE);
    }
}
