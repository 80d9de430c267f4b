//! Commands in the namespaces of a network, and the script of what was done.
//!
//! The script holds every command that changed something, as it would be typed inside `unshare -Urnm bash` (as root:
//! `unshare -nm bash`); how we got inside is left out. A line with `#` is for the reader.

use crate::error::Error;
use crate::net::holder::Holder;
use crate::net::refusal;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, Command, Stdio};

/// First lines of every script.
const HEADER: &str = "\
# The commands that made this network. To make it again: unshare -Urnm bash THIS-FILE (as root: unshare -nm bash THIS-FILE);
# to look around in it, type the lines into unshare -Urnm bash.
PATH=$PATH:/usr/sbin:/sbin
";

/// A holder, and what was done in it.
#[derive(Debug)]
pub(crate) struct Shell {
    pub holder: Holder,
    script: String,
}

impl Shell {
    pub fn start() -> Result<Shell, Error> {
        Ok(Shell { holder: Holder::start()?, script: HEADER.to_owned() })
    }

    pub fn script(&self) -> &str {
        &self.script
    }

    pub fn note(&mut self, line: &str) {
        self.script.push_str(line.trim_end_matches('\n'));
        self.script.push('\n');
    }

    /// Runs a command that changes something: words with spaces between them. No word holds a space or a character that
    /// a shell would read in its own way.
    ///
    /// # Errors
    /// `no-tool`, or `command-failed` with what the command said.
    pub fn run(&mut self, namespace: Option<&str>, line: &str) -> Result<(), Error> {
        debug_assert!(line.split(' ').all(is_plain), "needs quotes: {line}");
        match namespace {
            Some(name) => self.note(&format!("nsenter --net=/run/netns/{name} {line}")),
            None => self.note(line),
        }
        self.read(namespace, line).map(drop)
    }

    /// Runs a command that changes nothing and gives what it prints; it does not get into the script.
    ///
    /// # Errors
    /// As [`Shell::run`].
    pub fn read(&self, namespace: Option<&str>, line: &str) -> Result<String, Error> {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        let mut command = self.holder.command(namespace, program);
        command.args(words).stdin(Stdio::null());
        let output = command.output().map_err(|error| not_started("nsenter", &error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if !crate::net::probe::has_tool(program) {
            return Err(refusal::missing_tool(program));
        }
        let place = namespace.map(|name| format!(" in the namespace {name}")).unwrap_or_default();
        Err(Error::new(
            "command-failed",
            format!("`{line}` failed{place}: {}", one_line(&said)),
            "try it by hand inside: unshare -Urnm bash (as root: unshare -nm bash)",
        ))
    }

    /// Starts a process with pipes to its standard input and output.
    ///
    /// # Errors
    /// `no-tool`, or `no-process`.
    pub fn spawn(&mut self, namespace: &str, words: &[OsString], is_realtime: bool) -> Result<Child, Error> {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let chrt = if is_realtime { "chrt --fifo 50 " } else { "" };
        self.note(&format!("# {chrt}nsenter --net=/run/netns/{namespace} {}", quoted.join(" ")));
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::new("no-process", "no command to start", "name a program"));
        };
        // Entering a mount namespace changes the working folder, so a relative path would lead elsewhere.
        let is_path = program.as_encoded_bytes().contains(&b'/');
        let program = if is_path { std::path::absolute(program).map(OsString::from) } else { Ok(program.clone()) };
        let program = program.map_err(|error| not_started("nsenter", &error))?;
        let mut command = if is_realtime {
            self.holder.realtime_command(Some(namespace), &program)
        } else {
            self.holder.command(Some(namespace), &program)
        };
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let first = if is_realtime { "chrt" } else { "nsenter" };
        command.spawn().map_err(|error| not_started(first, &error))
    }
}

/// The error for a process that could not be started.
fn not_started(program: &str, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return refusal::missing_tool(program);
    }
    Error::new(
        "no-process",
        format!("cannot start `{program}`: {error}"),
        "close other programs, or raise the limit: ulimit -u",
    )
}

/// Runs a command to its end; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c))
}

/// A word as a shell reads it back.
fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if is_plain(&word) { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        assert_eq!(quote(OsStr::new("10.77.1.2/24")), "10.77.1.2/24");
        assert_eq!(quote(OsStr::new("a file")), "'a file'");
        assert_eq!(quote(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quote(OsStr::new("$HOME")), "'$HOME'");
        assert_eq!(quote(OsStr::new("")), "''");
    }
}
