//! The learned state in a versioned JSON file, so that it survives restarts.
//!
//! ```text
//! {"format":1,"agent":"0.1.0","boot":"...","namespaces":[{"netns":null,"learned":{...}},...]}
//! ```
//!
//! `netns` is null for the network namespace of the agent. Other namespaces are restored only within the same boot of
//! the machine, because their numbers change at a reboot.

use super::decision_engine::DecisionEngine;
use crate::files::{self, NOFOLLOW};
use crate::log;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thalweg_policy::{Guard, Snapshot};
use thalweg_store::{Pending, Problem, remove_orphaned};
use thalweg_units::Time;

/// Version of the file format. The learned state in it has a separate version.
const FORMAT: u64 = 1;

const EVERY: Duration = Duration::from_secs(30);

/// Maximum mean write rate, to limit the wear of the disk.
const BYTES_PER_SECOND: u64 = 100_000;

/// The state file, locked by this process.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    boot: String,
    /// Holds the lock until this is dropped.
    _lock: File,
    due: Instant,
    writing: Option<JoinHandle<Written>>,
    last: Result<Option<u64>, String>,
}

/// Result of a write: the UNIX time of the state in microseconds, and its size in bytes; or the error.
type Written = Result<(u64, u64), String>;

#[derive(Serialize)]
struct Out<'a> {
    format: u64,
    agent: &'a str,
    boot: &'a str,
    namespaces: Vec<OutNamespace>,
}

#[derive(Serialize)]
struct OutNamespace {
    netns: Option<u32>,
    learned: Snapshot,
}

/// Fields that do not depend on the version.
#[derive(Deserialize)]
struct Header {
    format: Option<u64>,
}

#[derive(Deserialize)]
struct In {
    boot: String,
    namespaces: Vec<InNamespace>,
}

#[derive(Deserialize)]
struct InNamespace {
    netns: Option<u32>,
    learned: Box<RawValue>,
}

/// The restored state of each network namespace; `None` is that of the agent.
pub type Learned = Vec<(Option<u32>, Guard)>;

impl State {
    /// Locks the file for this process, and reads it.
    ///
    /// # Errors
    /// If the file cannot be locked or read, or is invalid; it is not modified.
    pub fn open(path: &Path) -> Result<(State, Learned), Problem> {
        let place = path.display().to_string();
        let failed = |error: io::Error| {
            let (expected, hint) = ("a path where root may create a file", "choose another file with --state FILE");
            Problem::failed("state", &place, error, expected, hint)
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = path.with_file_name(format!("{}.lock", file_name(path)));
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).custom_flags(NOFOLLOW).open(lock);
        let lock = lock.map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let (expected, hint) =
                ("a separate file for each agent", "stop the other agent, or choose another file with --state FILE");
            Problem::failed("state-in-use", &place, "another agent that uses it", expected, hint)
        })?;
        // Removes the temporary file of an agent that was killed during a write; others may have states in this folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = remove_orphaned(folder);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let learned = match files::read_text(path, files::LARGE) {
            Ok(text) => read(&text, &boot).map_err(|found| damaged(&place, &found))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(damaged(&place, &error.to_string()));
            }
            Err(error) => return Err(failed(error)),
        };
        let state = State {
            path: path.to_owned(),
            boot,
            _lock: lock,
            due: Instant::now() + EVERY,
            writing: None,
            last: Ok(None),
        };
        Ok((state, learned))
    }

    /// Renames the file. Returns the new name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn set_aside(&self, now: Time) -> Result<PathBuf, Problem> {
        let seconds = now.as_micros() / 1_000_000;
        let aside = self.path.with_file_name(format!("{}.{seconds}", file_name(&self.path)));
        fs::rename(&self.path, &aside).map_err(|error| {
            let (place, expected) = (self.path.display().to_string(), "a file that can be renamed");
            Problem::failed("state", &place, error, expected, &format!("sudo mv {place} {place}.old"))
        })?;
        Ok(aside)
    }

    /// Writes the state on a separate thread if that is due.
    pub fn tick(&mut self, engine: &DecisionEngine, now: Time) {
        if self.writing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        if let Some(thread) = self.writing.take() {
            let written = thread.join().unwrap_or_else(|_| Err("the writer thread panicked".to_owned()));
            let pause = written.as_ref().map_or(EVERY, |(_, bytes)| Duration::from_secs(bytes / BYTES_PER_SECOND));
            self.due = Instant::now() + pause.max(EVERY);
            self.note(written.map(|(us, _)| us));
        }
        if Instant::now() < self.due {
            return;
        }
        let (namespaces, boot, path) = (namespaces(engine), self.boot.clone(), self.path.clone());
        let write = move || match write(&path, &boot, namespaces) {
            Ok(bytes) => Ok((now.as_micros(), bytes)),
            Err(error) => Err(error.to_string()),
        };
        match thread::Builder::new().name("state".to_owned()).spawn(write) {
            Ok(thread) => self.writing = Some(thread),
            Err(error) => {
                self.note(Err(error.to_string()));
                self.due = Instant::now() + EVERY;
            }
        }
    }

    /// Writes the state for the last time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(&mut self, engine: &DecisionEngine) -> Result<(), Problem> {
        if let Some(thread) = self.writing.take() {
            let _ = thread.join();
        }
        write(&self.path, &self.boot, namespaces(engine)).map(drop).map_err(|error| {
            let place = self.path.display().to_string();
            let hint = "the learned state since the last write is lost; df -h shows whether the disk is full";
            Problem::failed("state", &place, error, "a writable file", hint)
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the UNIX time of the last write in microseconds, `None` before the first one; or its error.
    pub fn last(&self) -> &Result<Option<u64>, String> {
        &self.last
    }

    fn note(&mut self, result: Result<u64, String>) {
        if let (Err(error), Ok(_)) = (&result, &self.last) {
            log::error(&format!("{}: the learned state cannot be written: {error}", self.path.display()));
        }
        self.last = result.map(Some);
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn namespaces(engine: &DecisionEngine) -> Vec<OutNamespace> {
    engine.learned().map(|(netns, guard)| OutNamespace { netns, learned: Snapshot::of(guard) }).collect()
}

/// Writes the file; returns its size in bytes.
fn write(path: &Path, boot: &str, namespaces: Vec<OutNamespace>) -> io::Result<u64> {
    let mut pending = Pending::create(path)?;
    pending.file().set_permissions(Permissions::from_mode(0o600))?;
    let mut to = BufWriter::new(pending.file());
    let out = Out { format: FORMAT, agent: env!("CARGO_PKG_VERSION"), boot, namespaces };
    serde_json::to_writer(&mut to, &out)?;
    to.write_all(b"\n")?;
    to.flush()?;
    drop(to);
    pending.sync()?;
    let bytes = pending.file().metadata()?.len();
    pending.publish()?;
    Ok(bytes)
}

fn read(text: &str, boot: &str) -> Result<Learned, String> {
    let form = |error: serde_json::Error| format!("an invalid state file: {error}");
    let header: Header = serde_json::from_str(text).map_err(form)?;
    match header.format {
        Some(FORMAT) => {}
        Some(other) => return Err(format!("format {other}, which this version does not support")),
        None => return Err("an invalid state file: its key `format` is missing".to_owned()),
    }
    let all: In = serde_json::from_str(text).map_err(form)?;
    let is_same_boot = all.boot == boot && !boot.is_empty();
    let kept = all.namespaces.into_iter().filter(|namespace| namespace.netns.is_none() || is_same_boot);
    let restored = kept.map(|namespace| {
        let guard = Snapshot::restore(namespace.learned.get()).map_err(|error| error.to_string())?;
        Ok((namespace.netns, guard))
    });
    restored.collect()
}

fn damaged(place: &str, found: &str) -> Problem {
    let expected = format!("the learned state of an agent of this version (format {FORMAT})");
    let hint = format!("nothing was changed; to start over: sudo mv {place} {place}.old");
    Problem::refused("bad-state", place, found, &expected, &hint)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
