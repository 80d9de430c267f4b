//! What stops a command, and how the process then ends.

use std::fmt;
use std::process::ExitCode;

/// How the process ends. The codes are those of `thalweg` (docs/reference/exit-codes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for is done.
    Finished,
    /// Something was tried and failed.
    Failed,
    /// The command line is wrong, or a file that it names.
    Refused,
    /// Something is missing on this machine.
    Missing,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Finished => 0,
            Exit::Failed => 1,
            Exit::Refused => 2,
            Exit::Missing => 4,
        })
    }
}

/// Why a command stopped, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How the process ends.
    pub exit: Exit,
    /// Short name, always the same for the same kind of problem.
    pub code: &'static str,
    /// File, flag or part of the machine.
    pub place: String,
    /// What was found there.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    /// Something was tried and failed.
    pub fn failed(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Failed, code, place, found, expected, hint)
    }

    /// The command line is wrong, or a file that it names.
    pub fn refused(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Refused, code, place, found, expected, hint)
    }

    /// Something is missing on this machine.
    pub fn missing(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Missing, code, place, found, expected, hint)
    }

    fn new(
        exit: Exit,
        code: &'static str,
        place: &str,
        found: impl fmt::Display,
        expected: &str,
        hint: &str,
    ) -> Problem {
        let (place, found) = (place.to_owned(), found.to_string());
        Problem { exit, code, place, found, expected: expected.to_owned(), hint: hint.to_owned() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { code, place, found, expected, hint, .. } = self;
        write!(out, "{place}: found {found}; expected {expected} [{code}]\n  hint: {hint}")
    }
}
