//! What stops a command, and how the process then ends.

use std::fmt;
use std::process::ExitCode;
use thalweg_store::{Error, Shortage};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for is there.
    Finished,
    /// An experiment failed.
    Failed,
    /// Bad usage, a bad plan, or a run directory of another plan.
    Refused,
    /// The run directory cannot be written.
    NotWritable,
    /// A resource of the machine is used up: open files, processes, memory. The same command can succeed later.
    Temporary,
    /// Somebody asked to stop.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Finished => 0,
            Exit::Failed => 1,
            Exit::Refused => 2,
            Exit::NotWritable => 3,
            Exit::Temporary => thalweg_store::EXIT_TEMPORARY,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How the process ends.
    pub exit: Exit,
    /// Short name.
    pub code: &'static str,
    /// File, key or flag.
    pub place: String,
    /// What was found there.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: found {}, expected {}", self.place, self.found, self.expected)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let exit = match error {
            Error::OtherRun { .. } | Error::OtherPart { .. } | Error::NotARun { .. } | Error::BadRunFile { .. } => {
                Exit::Refused
            }
            Error::Shortage { shortage, .. } if !matches!(shortage, Shortage::Disk | Shortage::Quota) => {
                Exit::Temporary
            }
            _ => Exit::NotWritable,
        };
        Problem {
            exit,
            code: error.code(),
            place: error.place(),
            found: error.found(),
            expected: error.expected(),
            hint: error.hint(),
        }
    }
}
