//! The watchdog keeps the BPF programs of `tune` attached when the daemon dies: it is a process that holds their link.
//!
//! If the daemon dies without a notification, the watchdog waits for the grace time, in which the kernel continues to
//! choose with the last probabilities. Then it exits, and the kernel unloads the programs, because nothing is pinned.

use crate::cc::holders::{Held, Holder, holders};
use crate::signals::Signals;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_store::Problem;

/// Hidden command of the agent that runs a watchdog.
pub const COMMAND: &str = "tune-keeper";

const SOCKET: &str = "--socket";

/// The daemon's notification.
const WORD: &[u8] = b"end";

const PATIENCE: Duration = Duration::from_secs(5);

/// Handle of a running watchdog.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog that holds a link, for the agent with this control socket.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(link: &impl AsFd, grace: Duration, socket: &Path) -> Result<Watchdog, Problem> {
        let failed = |error: std::io::Error| {
            let hint = "check ulimit -u and ulimit -n; --grace 0s needs no second process, but restores the system's \
                        default at once if the agent dies";
            Problem::failed("no-watchdog", "this process", error, "permission to start another process", hint)
        };
        // The child inherits this copy: unlike the original, it is not closed on exec.
        let copy = rustix::io::dup(link).map_err(|error| failed(error.into()))?;
        let child = Command::new("/proc/self/exe")
            .arg0("thalweg-agent")
            .args([COMMAND, "--link", &copy.as_raw_fd().to_string(), "--grace-ms", &grace.as_millis().to_string()])
            .arg(SOCKET)
            .arg(absolute(socket))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Ctrl-C must reach only the daemon.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Watchdog { child })
    }

    /// Returns whether the process is still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Ends the watchdog.
impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // The write fails only if the watchdog has exited already.
            let _ = pipe.write_all(WORD);
        }
        let _ = self.child.wait();
    }
}

/// Main function of the watchdog: holds the inherited link until the daemon closes its pipe, and for the grace time if
/// the daemon sent no notification. Ignores SIGHUP, which makes agents reload their settings.
///
/// # Errors
/// If SIGHUP cannot be ignored.
pub fn run(grace: Duration) -> Result<(), Problem> {
    Signals::ignore_reload()?;
    let mut input = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut input);
    if input != WORD {
        thread::sleep(grace);
    }
    Ok(())
}

/// Terminates the watchdogs that hold a link, unless another process holds it, too. Returns whether they released it.
pub fn end_orphans(link: u32) -> bool {
    let holders = holders(Held::Link(link));
    if holders.is_empty() || !holders.iter().all(is_watchdog) {
        return false;
    }
    for holder in &holders {
        end(holder);
    }
    let deadline = Instant::now() + PATIENCE;
    while !self::holders(Held::Link(link)).is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    self::holders(Held::Link(link)).is_empty()
}

fn is_watchdog(holder: &Holder) -> bool {
    words(holder.pid).get(1).is_some_and(|word| word == COMMAND.as_bytes())
}

/// Returns the command line of a process.
fn words(pid: i32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

fn absolute(socket: &Path) -> PathBuf {
    std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned())
}

/// A watchdog whose agent was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Process id of the watchdog.
    pub pid: i32,
    /// Id of the program of the link that it holds.
    pub program: u32,
}

/// Returns the watchdog of the agent with this control socket, if only watchdogs hold the link.
pub fn orphan_of(socket: &Path) -> Option<Orphan> {
    let socket = absolute(socket);
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find_map(|pid| {
        let words = words(pid);
        let value = |option: &str| {
            let at = words.iter().position(|word| word == option.as_bytes())?;
            words.get(at + 1)
        };
        if words.get(1)? != COMMAND.as_bytes() || value(SOCKET)? != socket.as_os_str().as_bytes() {
            return None;
        }
        let file = String::from_utf8(value("--link")?.clone()).ok()?;
        let link = fs::read_to_string(format!("/proc/{pid}/fdinfo/{file}")).ok()?;
        let number = |name: &str| link.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok());
        let holders = holders(Held::Link(number("link_id:")?));
        holders.iter().all(is_watchdog).then_some(Orphan { pid, program: number("prog_id:")? })
    })
}

/// Terminates a watchdog, unless its process id now belongs to a different process.
fn end(holder: &Holder) {
    let Some(pid) = Pid::from_raw(holder.pid) else { return };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if is_watchdog(holder) {
        let _ = pidfd_send_signal(process, Signal::TERM);
    }
}
