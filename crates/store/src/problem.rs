//! Errors that end a command, and their exit codes.

use crate::error::Error;
use crate::shortage::Shortage;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Exit status of `thalweg-engine` or `thalweg-agent`. The codes are those of `thalweg` (docs/reference/exit-codes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The request was completed.
    Finished,
    /// An operation failed, for example an experiment.
    Failed,
    /// The command line, or a file that it names, is invalid; or a run directory belongs to another plan.
    Refused,
    /// A run directory or an output cannot be written, or a run directory cannot be read.
    NotWritable,
    /// A requirement is missing on this machine.
    Missing,
    /// A resource is exhausted (open files, processes, memory; disk space, unless a write failed): the same command may
    /// succeed later.
    Exhausted,
    /// The user requested a stop.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Finished => 0,
            Exit::Failed => 1,
            Exit::Refused => 2,
            Exit::NotWritable => 3,
            Exit::Missing => 4,
            // `EX_TEMPFAIL` of sysexits.h: "try again later".
            Exit::Exhausted => 75,
            Exit::Interrupted => 130,
        })
    }
}

/// The reason why a command ended, as text for the user.
///
/// If `found` contains the number of a system error that indicates a shortage, the constructors replace the problem by
/// that of the shortage, whose exit status is [`Exit::Exhausted`]. Exception: [`Problem::failed`] keeps the problem if
/// the disk is full or the disk quota is exhausted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Exit status of the process.
    pub exit: Exit,
    /// Short name, stable for each kind of problem.
    pub code: &'static str,
    /// The affected file, option or part of the machine.
    pub place: String,
    /// Actual state.
    pub found: String,
    /// Expected state.
    pub expected: String,
    /// How to fix the problem.
    pub hint: String,
}

impl Problem {
    /// Returns the problem of a failed operation.
    pub fn failed(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Failed, code, place, found, expected, hint)
    }

    /// Returns the problem of an invalid command line, or of an invalid file that it names.
    pub fn refused(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Refused, code, place, found, expected, hint)
    }

    /// Returns the problem of an exhausted resource.
    pub fn exhausted(shortage: Shortage, place: &str, found: impl fmt::Display, expected: &str) -> Problem {
        Problem::new(Exit::Exhausted, shortage.code(), place, found, expected, shortage.hint())
    }

    /// Returns the problem of a requirement that is missing on this machine.
    pub fn missing(code: &'static str, place: &str, found: impl fmt::Display, expected: &str, hint: &str) -> Problem {
        Problem::new(Exit::Missing, code, place, found, expected, hint)
    }

    /// Returns the problem as a sentence, without the hint.
    pub fn sentence(&self) -> String {
        format!("{}: found {}, expected {}", self.place, self.found, self.expected)
    }

    fn new(
        exit: Exit,
        code: &'static str,
        place: &str,
        found: impl fmt::Display,
        expected: &str,
        hint: &str,
    ) -> Problem {
        // libbpf's errors include their cause only in this format.
        let (place, found) = (place.to_owned(), format!("{found:#}"));
        let (expected, hint) = (expected.to_owned(), hint.to_owned());
        let problem = Problem { exit, code, place, found, expected, hint };
        match shortage(&problem.found) {
            Some(shortage) => problem.of_shortage(shortage),
            None => problem,
        }
    }

    /// Converts the problem to that of a shortage, except as described at [`Problem`].
    fn of_shortage(mut self, shortage: Shortage) -> Problem {
        if matches!(shortage, Shortage::Disk | Shortage::Quota) && self.exit == Exit::Failed {
            return self;
        }
        (self.exit, self.code) = (Exit::Exhausted, shortage.code());
        (self.expected, self.hint) = ("enough of this resource".to_owned(), shortage.hint().to_owned());
        self.found = format!("{}: {}", shortage.what(), self.found);
        self
    }
}

/// Returns the shortage in the text of an error: system errors of Rust's standard library, rustix and libbpf-rs end
/// with the system's error number.
fn shortage(found: &str) -> Option<Shortage> {
    let number = found.rsplit_once("(os error ")?.1.split_once(')')?.0.parse().ok()?;
    Shortage::of(&io::Error::from_raw_os_error(number))
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { code, place, found, expected, hint, .. } = self;
        write!(out, "{place}: found {found}; expected {expected} [{code}]\n  hint: {hint}")
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let exit = match error {
            Error::OtherRun { .. } | Error::OtherPart { .. } | Error::NotARun { .. } | Error::BadRunFile { .. } => {
                Exit::Refused
            }
            Error::Shortage { shortage, .. } if !matches!(shortage, Shortage::Disk | Shortage::Quota) => {
                Exit::Exhausted
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn refused(errno: Errno) -> Problem {
        let error = io::Error::from_raw_os_error(errno.raw_os_error());
        Problem::refused(
            "broken-object",
            "a.bpf.o",
            format!("something else ({error})"),
            "an object",
            "compile it again",
        )
    }

    #[test]
    fn a_resource_shortage_is_named_and_retryable() {
        for (errno, code, hint) in [
            (Errno::MFILE, "too-few-descriptors", "LimitNOFILE="),
            (Errno::NFILE, "too-few-descriptors", "fs.file-max"),
            (Errno::NOMEM, "too-little-memory", "MemoryMax="),
            (Errno::AGAIN, "too-few-processes", "TasksMax="),
            (Errno::NOSPC, "disk-full", "df -h"),
            (Errno::DQUOT, "disk-full", "quota"),
        ] {
            let problem = refused(errno);
            assert_eq!((problem.exit, problem.code), (Exit::Exhausted, code), "{problem}");
            assert!(problem.hint.contains(hint) && problem.found.contains("something else"), "{problem}");
        }
        let other = refused(Errno::NOENT);
        assert_eq!((other.exit, other.code), (Exit::Refused, "broken-object"), "{other}");
    }
}
