//! The log of the agent: events with a level.
//!
//! Warnings and errors go to standard error, except those of [`output`]; other events go to standard output. Each line
//! to journald (`JOURNAL_STREAM`, systemd.exec(5)) begins with its priority (sd-daemon(3)).

use crate::text::printable;
use clap::ValueEnum;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// Severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Failures
    Error,
    /// Degraded operation
    Warning,
    /// Actions of the agent and changes that it makes
    Info,
    /// Details for developers
    Debug,
}

impl Level {
    /// Returns the priority of syslog(3).
    fn priority(self) -> u8 {
        match self {
            Level::Error => 3,
            Level::Warning => 4,
            Level::Info => 6,
            Level::Debug => 7,
        }
    }
}

/// The priority of the least important lines that are written.
static SHOWN: AtomicU8 = AtomicU8::new(6);

/// Sets the least important level that is written.
pub fn set_level(level: Level) {
    SHOWN.store(level.priority(), Ordering::Relaxed);
}

/// Writes an event at level `error`.
pub fn error(text: &str) {
    write(Level::Error, text);
}

/// Writes an event at level `warning`.
pub fn warning(text: &str) {
    write(Level::Warning, text);
}

/// Writes an event at level `info`.
pub fn info(text: &str) {
    write(Level::Info, text);
}

/// Writes an event at level `debug`.
pub fn debug(text: &str) {
    write(Level::Debug, text);
}

fn write(level: Level, text: &str) {
    if level > Level::Warning {
        return output(level, text);
    }
    let to = std::io::stderr();
    let name = if is_journal(&to) { "" } else { "thalweg-agent: " };
    if is_shown(level) {
        // An error, such as a closed pipe, is ignored here and in `output`: the agent continues.
        let _ = to.lock().write_all(lines(level, is_journal(&to), &format!("{name}{text}")).as_bytes());
    }
}

/// Writes an event to standard output, even a warning or an error, for events that a command exists to report.
pub fn output(level: Level, text: &str) {
    let mut to = std::io::stdout().lock();
    if is_shown(level) {
        let text = lines(level, is_journal(&to), text);
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }
}

fn is_shown(level: Level) -> bool {
    level.priority() <= SHOWN.load(Ordering::Relaxed)
}

/// Formats the lines of an event, each with its priority if it goes to journald.
fn lines(level: Level, is_journal: bool, text: &str) -> String {
    let priority = if is_journal { format!("<{}>", level.priority()) } else { String::new() };
    printable(text).lines().map(|line| format!("{priority}{line}\n")).collect()
}

/// Returns whether a file is the stream to journald.
fn is_journal(file: &impl AsFd) -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(file).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_for_journald_has_its_priority() {
        assert_eq!(lines(Level::Error, true, "one\n  two"), "<3>one\n<3>  two\n");
        assert_eq!(lines(Level::Warning, true, "one"), "<4>one\n");
        assert_eq!(lines(Level::Info, false, "one\n"), "one\n");
        assert_eq!(lines(Level::Debug, true, "a\u{1b}[2J"), "<7>a\\u001b[2J\n");
    }
}
