//! Errors of run directories.

use crate::shortage::Shortage;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: found {}, expected {}", self.place(), self.found(), self.expected())]
#[non_exhaustive]
pub enum Error {
    /// Another process is writing the directory.
    Busy {
        /// The run directory.
        directory: PathBuf,
        /// The process that writes it, if known.
        pid: Option<u32>,
    },
    /// The directory contains the run of another plan, engine or version.
    OtherRun {
        /// The run directory.
        directory: PathBuf,
        /// Actual value.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// A directory to be merged has another plan, engine or version than the first.
    OtherPart {
        /// The run directory.
        directory: PathBuf,
        /// Actual value.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// The directory contains other files, but no `run.json`.
    NotARun {
        /// The directory.
        directory: PathBuf,
        /// Name of one of the files.
        file: String,
    },
    /// The `run.json` of the directory is invalid, or missing from a directory to be merged.
    BadRunFile {
        /// The file.
        file: PathBuf,
        /// The error.
        why: String,
    },
    /// A resource is exhausted, such as disk space, open files or memory.
    Shortage {
        /// The run directory.
        directory: PathBuf,
        /// The resource.
        shortage: Shortage,
        /// The system's error.
        source: io::Error,
    },
    /// The system reported an error on reading or writing.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Creates an error from a system error, for a file below the run directory `directory`.
    pub(crate) fn io(directory: &Path, path: &Path, source: io::Error) -> Error {
        match Shortage::of(&source) {
            Some(shortage) => Error::Shortage { directory: directory.to_owned(), shortage, source },
            None => Error::Io { path: path.to_owned(), source },
        }
    }

    /// Returns the short name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Busy { .. } => "busy",
            Error::OtherRun { .. } | Error::OtherPart { .. } => "other-run",
            Error::NotARun { .. } => "not-a-run",
            Error::BadRunFile { .. } => "bad-run-file",
            Error::Shortage { shortage, .. } => shortage.code(),
            Error::Io { .. } => "not-accessible",
        }
    }

    /// Returns the affected file or directory.
    pub fn place(&self) -> String {
        match self {
            Error::Busy { directory, .. }
            | Error::OtherRun { directory, .. }
            | Error::OtherPart { directory, .. }
            | Error::NotARun { directory, .. }
            | Error::Shortage { directory, .. } => directory.display().to_string(),
            Error::BadRunFile { file: path, .. } | Error::Io { path, .. } => path.display().to_string(),
        }
    }

    /// Returns the actual state.
    pub fn found(&self) -> String {
        match self {
            Error::Busy { pid: Some(pid), .. } => format!("process {pid} writing this run directory"),
            Error::Busy { pid: None, .. } => "another process writing this run directory".to_owned(),
            Error::OtherRun { found, .. } | Error::OtherPart { found, .. } => found.clone(),
            Error::NotARun { file, .. } => format!("`{file}`, but no run.json"),
            Error::BadRunFile { why, .. } => why.clone(),
            Error::Shortage { shortage, source, .. } => format!("{} ({source})", shortage.what()),
            Error::Io { source, .. } => source.to_string(),
        }
    }

    /// Returns the expected state.
    pub fn expected(&self) -> String {
        match self {
            Error::Busy { .. } => "one engine at a time".to_owned(),
            Error::OtherRun { expected, .. } | Error::OtherPart { expected, .. } => expected.clone(),
            Error::NotARun { .. } => "a run directory, or an empty or new one".to_owned(),
            Error::BadRunFile { .. } => "the run.json of a run directory".to_owned(),
            Error::Shortage { .. } => "enough of this resource for the tables of an experiment".to_owned(),
            Error::Io { .. } => "read and write access".to_owned(),
        }
    }

    /// Returns how to fix the error.
    pub fn hint(&self) -> String {
        let place = self.place();
        match self {
            Error::Busy { pid: Some(pid), .. } => format!("wait until it has finished, or stop it: kill {pid}"),
            Error::Busy { pid: None, .. } => "wait until it has finished".to_owned(),
            Error::OtherRun { .. } => {
                format!("choose another directory with --out, or remove this one: rm -r '{place}'")
            }
            Error::OtherPart { .. } => {
                "merge needs runs of one plan by one version: omit this directory, or run the plan again into it"
                    .to_owned()
            }
            Error::NotARun { .. } => "choose another directory with --out".to_owned(),
            Error::BadRunFile { .. } => {
                "thalweg writes this file atomically: choose the directory of a run, or a new one".to_owned()
            }
            Error::Shortage { shortage: Shortage::Disk | Shortage::Quota, .. } => format!(
                "free space (df -h '{place}' shows how much there is) and run the same command again: \
                 finished experiments are kept"
            ),
            Error::Shortage { shortage, .. } => {
                format!("{}; then run the same command again: finished experiments are kept", shortage.hint())
            }
            Error::Io { .. } => {
                format!("check the permissions (ls -ld '{place}'), or choose another directory with --out")
            }
        }
    }
}
