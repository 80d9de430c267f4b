//! The process `thalweg-engine reap`: terminates the processes that programs leave in the namespaces of a network.
//!
//! It does so even if the engine is killed: at the end of its standard input, it terminates all of them.
//!
//! Its input is a line with the inodes of the namespaces, followed by a line for each round with the process ids to
//! spare. It answers each round with a line that contains the number of terminated processes, or the processes that do
//! not exit. After the line `dismissed` the reaper exits without terminating any process.

use crate::error::Error;
use crate::net::holder::{alone, wait_for};
use crate::net::{Network, processes};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Timeouts for processes to exit after SIGTERM, and after SIGKILL.
const TERM: Duration = Duration::from_secs(1);
const KILL: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(10);

const DISMISSED: &str = "dismissed";

/// The reaper of a network. Dropping it terminates the processes in the network, unless it was dismissed.
pub(super) struct Reaper {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Reaper {
    /// Starts the reaper.
    ///
    /// # Errors
    /// `no-process`.
    pub fn start(engine: &Path, network: &Network) -> Result<Reaper, Error> {
        let failed = |error: io::Error| {
            let message = format!("`{} reap` cannot be started: {error}", engine.display());
            Error::new("no-process", message, "close other programs, or raise the limit: ulimit -u")
        };
        let mut command = Command::new(engine);
        command.arg("reap").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = alone(&mut command).spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(io::Error::other("no pipe")))?;
        let mut reaper = Reaper { child, answers: BufReader::new(stdout) };
        reaper.send(network.identities().iter()).map_err(failed)?;
        Ok(reaper)
    }

    fn send(&mut self, numbers: impl Iterator<Item = impl ToString>) -> io::Result<()> {
        let line: Vec<String> = numbers.map(|number| number.to_string()).collect();
        let stdin = self.child.stdin.as_mut().ok_or_else(|| io::Error::other("no pipe"))?;
        writeln!(stdin, "{}", line.join(" "))
    }

    /// Terminates the processes in the network except those with these ids; returns the number of terminated ones.
    ///
    /// # Errors
    /// `leftovers`.
    pub fn end_all_but(&mut self, spared: &[u32]) -> Result<u64, Error> {
        let mut line = String::new();
        let answer = self.send(spared.iter()).and_then(|()| self.answers.read_line(&mut line));
        let count = answer.ok().and_then(|_| line.trim().parse().ok());
        count.ok_or_else(|| {
            let message = format!("programs still run in the network: {}", line.trim());
            Error::new("leftovers", message, "terminate them: kill -9 PID")
        })
    }
}

impl Reaper {
    /// Makes the reaper exit without terminating any process.
    pub fn dismiss(&mut self) {
        let _ = self.send([DISMISSED].into_iter());
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // The reaper exits at the end of its input.
        drop(self.child.stdin.take());
        if wait_for(&mut self.child, TERM + KILL).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs the reaper.
///
/// # Errors
/// If standard input cannot be read, or a process does not exit.
pub fn reap() -> io::Result<()> {
    let mut lines = io::stdin().lock().lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let namespaces: BTreeSet<u64> = first.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    for line in lines {
        let line = line?;
        if line == DISMISSED {
            return Ok(());
        }
        let spared: BTreeSet<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let answer = end_all(&namespaces, &spared).map_or_else(|error| error.to_string(), |count| count.to_string());
        // The write fails if the engine has exited.
        let _ = writeln!(io::stdout(), "{answer}");
    }
    end_all(&namespaces, &BTreeSet::new()).map(drop)
}

fn end_all(namespaces: &BTreeSet<u64>, spared: &BTreeSet<u32>) -> io::Result<u64> {
    let began = Instant::now();
    let mut ended = BTreeSet::new();
    loop {
        let survivors: Vec<(u32, String)> =
            processes(namespaces).into_iter().filter(|(pid, _)| !spared.contains(pid)).collect();
        if survivors.is_empty() {
            return Ok(ended.len() as u64);
        }
        if began.elapsed() > TERM + KILL {
            let names: Vec<String> = survivors.iter().map(|(pid, name)| format!("{pid} ({name})")).collect();
            return Err(io::Error::other(names.join(", ")));
        }
        for pid in survivors.iter().filter_map(|(pid, _)| Pid::from_raw(*pid as i32)) {
            let is_new = ended.insert(pid.as_raw_nonzero());
            // SIGHUP because interactive shells ignore SIGTERM, and SIGCONT because a stopped process does not handle
            // signals.
            let signals: &[Signal] = match (is_new, began.elapsed() > TERM) {
                (_, true) => &[Signal::KILL],
                (true, false) => &[Signal::HUP, Signal::TERM, Signal::CONT],
                (false, false) => &[],
            };
            for signal in signals {
                let _ = kill_process(pid, *signal);
            }
        }
        thread::sleep(PAUSE);
    }
}
