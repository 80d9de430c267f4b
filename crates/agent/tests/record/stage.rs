//! An agent that records only the connections of this process.

use crate::common::{Namespace, Running, left_out, link_agent, wait_until};
use crate::rows::{self, Row};
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// Serializes the tests, because the process can be in only one cgroup at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A cgroup of this process, and a folder for records.
pub struct Stage {
    _one: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    /// The cgroup of this process during the test.
    pub cgroup: PathBuf,
    before: PathBuf,
}

impl Stage {
    /// Returns `None` and reports the skip if recording is not possible; in CI, the test fails.
    pub fn new() -> Option<Stage> {
        let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        match Stage::build(lock) {
            Ok(stage) => Some(stage),
            Err(why) => {
                left_out("nothing can be recorded here", &why);
                None
            }
        }
    }

    fn build(lock: MutexGuard<'static, ()>) -> Result<Stage, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let mount = mount.and_then(|line| line.split(' ').nth(1)).ok_or("no cgroup v2 is mounted")?;
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("no cgroup v2")?;
        let before = Path::new(mount).join(own);
        let cgroup = Path::new(mount).join(format!("thalweg-test-{}", std::process::id()));
        fs::create_dir_all(&cgroup).map_err(|error| format!("{}: {error}", cgroup.display()))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // A folder from which any user may execute files.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).map_err(|error| error.to_string())?;
        let stage = Stage { _one: lock, folder, cgroup, before };
        move_to(&stage.cgroup).map_err(|error| format!("{}: {error}", stage.cgroup.display()))?;
        link_agent(&stage.agent_file()).map_err(|error| error.to_string())?;
        Ok(stage)
    }

    /// Returns a path of the agent at which any user may run it.
    pub fn agent_file(&self) -> PathBuf {
        self.folder.path().join("thalweg-agent")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command that records this test's connections.
    pub fn command(&self, options: &[&str]) -> Vec<String> {
        self.line("record", options)
    }

    /// Builds the agent command with a subcommand and options.
    pub fn line(&self, command: &str, options: &[&str]) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let mut line: Vec<String> = vec![path("thalweg-agent"), command.to_owned()];
        for (option, value) in [
            ("--out", path("records")),
            ("--socket", path("agent.sock")),
            ("--cgroup", self.cgroup.display().to_string()),
            ("--addresses", "whole".to_owned()),
            ("--flush", "1s".to_owned()),
        ] {
            if !options.contains(&option) {
                line.extend([option.to_owned(), value]);
            }
        }
        line.push("--no-metrics".to_owned());
        line.extend(options.iter().map(|option| (*option).to_owned()));
        line
    }

    /// Starts recording.
    pub fn record(&self, options: &[&str]) -> Agent {
        self.record_behind(&[], options)
    }

    /// Starts recording through a wrapper command.
    pub fn record_behind(&self, behind: &[&str], options: &[&str]) -> Agent {
        let line = self.command(options);
        let line: Vec<&str> = behind.iter().copied().chain(line.iter().map(String::as_str)).collect();
        self.started(&line, "recording ")
    }

    /// Starts an agent and waits until it reports that it is ready.
    pub fn started(&self, line: &[&str], word: &str) -> Agent {
        let process = Running::start(Command::new(line[0]).args(&line[1..]));
        assert!(process.said.starts_with(word), "{:?}", process.said);
        Agent { process, records: self.path("records"), socket: self.path("agent.sock") }
    }

    /// Moves this process out of the cgroup during a call, so that connections opened then are not recorded.
    pub fn outside<T>(&self, work: impl FnOnce() -> T) -> T {
        move_to(&self.before).expect("back to where it was");
        let result = work();
        move_to(&self.cgroup).expect("the test's cgroup");
        result
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = move_to(&self.before);
        // A process that is ending keeps the cgroup busy.
        for _ in 0..100 {
            match fs::remove_dir(&self.cgroup) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(20)),
                _ => break,
            }
        }
    }
}

fn move_to(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), "0")
}

/// A running agent that records.
pub struct Agent {
    pub process: Running,
    records: PathBuf,
    socket: PathBuf,
}

impl Agent {
    /// Returns the output of `status --json`.
    pub fn status(&self) -> Value {
        let output = self.said(&["status", "--json"]);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }

    /// Returns the output of `status`.
    pub fn status_text(&self) -> String {
        self.said(&["status"])
    }

    /// Returns one of the agent's counters.
    pub fn counter(&self, name: &str) -> u64 {
        self.status()["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// Waits until `count` connections have closed and their rows exist.
    pub fn wait_for_closed(&self, count: u64) {
        wait_until(&format!("{count} connections have closed"), || self.counter("close_rows") >= count);
    }

    /// Returns the output of `top --once`.
    pub fn top(&self) -> String {
        self.said(&["top", "--once"])
    }

    fn said(&self, command: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_thalweg-agent"))
            .args(command)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .expect("it starts");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Stops the agent with SIGTERM, and returns all rows that it has written.
    pub fn end(self) -> Vec<Row> {
        assert_eq!(self.process.end(Signal::TERM).0, Some(0));
        rows::read(&self.records)
    }
}

/// Runs a function in a network namespace.
pub fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/proc/{}/ns/net", namespace.holder.id())).expect("a namespace");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("it may be entered");
            work()
        });
        worker.join().expect("it works")
    })
}
