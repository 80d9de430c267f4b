//! Finds, signals and reaps the descendants of this process.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(5);

/// Timeout for killed processes to exit; an uninterruptible system call delays their exit.
const KILLED: Duration = Duration::from_secs(5);

/// Reaps exited children, including inherited orphans.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        ended(pid, status);
    }
}

/// Returns the running descendants of this process, from /proc. A subreaper inherits processes whose parents have
/// exited, so these count too.
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

/// Returns the parent of a process; `None` if the process has exited, reaped or not.
fn parent_of_living(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (state, parent) = state_and_parent(&stat)?;
    if matches!(state, "Z" | "X") { None } else { Some(parent) }
}

/// Returns the state and the parent of a process or thread. Source: proc_pid_stat(5).
fn state_and_parent(stat: &str) -> Option<(&str, i32)> {
    // The name, which precedes these fields, may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?, fields.next()?.parse().ok()?))
}

/// Returns whether a descendant has a thread that is runnable (R) or in uninterruptible sleep (D).
pub(super) fn are_busy() -> bool {
    descendants().into_iter().any(is_busy)
}

fn is_busy(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.any(|stat| state_and_parent(&stat).is_some_and(|(state, _)| matches!(state, "R" | "D")))
}

pub(super) fn signal_all(signal: Signal) {
    for pid in descendants() {
        // The process may have exited meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// Kills and reaps the descendants; gives up after [`KILLED`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn becomes(program: &Child, busy: bool) {
        let pid = Pid::from_child(program);
        let give_up = Instant::now() + Duration::from_secs(60);
        while is_busy(pid) != busy {
            assert!(Instant::now() < give_up, "is_busy is not {busy}");
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_program_that_computes_is_busy_and_one_that_sleeps_is_not() {
        for (words, busy) in [(["sh", "-c", "while :; do :; done"], true), (["sh", "-c", "exec sleep 1000"], false)] {
            let mut program = Command::new(words[0]).args(&words[1..]).spawn().unwrap();
            becomes(&program, busy);
            program.kill().unwrap();
            program.wait().unwrap();
        }
    }

    #[test]
    fn names_with_brackets_do_not_disturb_the_state_and_the_parent() {
        assert_eq!(state_and_parent("17 (a) R 1 (b)) D 23 17 17 0"), Some(("D", 23)));
        assert_eq!(state_and_parent("17 (sh)"), None);
    }
}
