//! Runs commands in the namespaces of a network, and records them as a script.
//!
//! The script contains the commands as they would be typed inside `unshare -Urnm bash` (as root: `unshare -nm bash`),
//! without entering the holder's namespaces.

use crate::error::Error;
use crate::net::holder::Holder;
use crate::net::refusal;
use crate::net::sys::Act;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

const HEADER: &str = "\
# The commands that created this network. They create it again for the time of a shell:
# unshare -Urnm bash --rcfile THIS-FILE (as root: unshare -nm bash --rcfile THIS-FILE)
PATH=$PATH:/usr/sbin:/sbin
";

/// A holder, and the script of the commands that ran in it.
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

    /// Runs a command that changes something. Its words are separated by spaces. No word may contain a space or a
    /// character that is special to a shell.
    ///
    /// # Errors
    /// `no-tool`, `no-process`, or `command-failed` with the command's output.
    pub fn run(&mut self, namespace: Option<&str>, line: &str) -> Result<(), Error> {
        self.run_all(namespace, &[line.to_owned()])
    }

    /// Runs several commands of `ip` and `tc`, in this order. Consecutive commands of one program form a batch, because
    /// starting a program can take longer than running the command.
    ///
    /// # Errors
    /// The same as [`Shell::run`]; commands after a failed one do not run.
    pub fn run_all(&mut self, namespace: Option<&str>, lines: &[String]) -> Result<(), Error> {
        for batch in lines.chunk_by(|one, next| program_of(one) == program_of(next)) {
            for line in batch {
                debug_assert!(line.split(' ').all(is_plain), "needs quotes: {line}");
                self.note_in(namespace, line);
            }
            self.run_batch(namespace, batch)?;
        }
        Ok(())
    }

    fn run_batch(&self, namespace: Option<&str>, batch: &[String]) -> Result<(), Error> {
        let program = program_of(&batch[0]);
        let started = |error: &io::Error| not_started(program, error);
        let mut command = self.holder.command(namespace, program).map_err(|error| started(&error))?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let output = if let [line] = batch {
            command.args(line.split(' ').skip(1)).stdin(Stdio::null()).output().map_err(|error| started(&error))?
        } else {
            let mut child =
                command.args(["-batch", "-"]).stdin(Stdio::piped()).spawn().map_err(|error| started(&error))?;
            if let Some(mut stdin) = child.stdin.take() {
                let arguments: String = batch.iter().map(|line| format!("{}\n", &line[program.len() + 1..])).collect();
                // The program stops reading when a command fails, and reports the failure.
                let _ = stdin.write_all(arguments.as_bytes());
            }
            child.wait_with_output().map_err(|error| started(&error))?
        };
        if output.status.success() {
            return Ok(());
        }
        let (line, message) = who_failed(batch, &String::from_utf8_lossy(&output.stderr));
        Err(failed(namespace, line, &message))
    }

    /// Performs system calls; each has an equivalent command, which is recorded in the script.
    ///
    /// # Errors
    /// `command-failed`, with the command; or `no-process`.
    pub fn act(&mut self, acts: Vec<(&str, Act)>) -> Result<(), Error> {
        let (lines, acts): (Vec<&str>, Vec<Act>) = acts.into_iter().unzip();
        let answers = self.holder.act(acts).map_err(|error| not_started("a helper process", &error))?;
        for (line, answer) in lines.into_iter().zip(answers) {
            self.note(line);
            if let Err(errno) = answer {
                return Err(failed(None, line, &io::Error::from_raw_os_error(errno).to_string()));
            }
        }
        Ok(())
    }

    /// Records a command in a namespace.
    pub fn note_in(&mut self, namespace: Option<&str>, line: &str) {
        match namespace {
            Some(name) => self.note(&format!("nsenter --net=/run/netns/{name} {line}")),
            None => self.note(line),
        }
    }

    /// Starts a process with pipes to its standard input, output and error.
    ///
    /// # Errors
    /// `no-tool`, or `no-process`.
    pub fn spawn(&mut self, namespace: &str, words: &[OsString], is_realtime: bool) -> Result<Child, Error> {
        self.spawn_with(namespace, words, is_realtime, |_| ())
    }

    /// Like [`Shell::spawn`]; `prepare` may change the command before it starts.
    ///
    /// # Errors
    /// The same as [`Shell::spawn`].
    pub fn spawn_with(
        &mut self,
        namespace: &str,
        words: &[OsString],
        is_realtime: bool,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Child, Error> {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let chrt = if is_realtime { "chrt --fifo 50 " } else { "" };
        self.note(&format!("# {chrt}nsenter --net=/run/netns/{namespace} {}", quoted.join(" ")));
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::new("no-process", "no command to start", "name a program"));
        };
        // Entering a mount namespace changes the working directory, so a relative path would refer to a different file.
        let is_path = program.as_encoded_bytes().contains(&b'/');
        let program = if is_path { std::path::absolute(program).map(OsString::from) } else { Ok(program.clone()) };
        let started = |error: &io::Error| not_started(&words[0].to_string_lossy(), error);
        let program = program.map_err(|error| started(&error))?;
        let command = if is_realtime {
            self.holder.realtime_command(Some(namespace), &program)
        } else {
            self.holder.command(Some(namespace), &program)
        };
        let mut command = command.map_err(|error| started(&error))?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut command);
        command.spawn().map_err(|error| started(&error))
    }
}

/// Returns the error for a process that could not be started.
pub(crate) fn not_started(program: &str, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return refusal::missing_tool(program);
    }
    Error::new(
        "no-process",
        format!("cannot start `{program}`: {error}"),
        "close other programs, or raise the limit: ulimit -u",
    )
}

/// Returns the error for a command that failed.
pub(crate) fn failed(namespace: Option<&str>, line: &str, message: &str) -> Error {
    let place = namespace.map(|name| format!(" in the namespace {name}")).unwrap_or_default();
    Error::new(
        "command-failed",
        format!("`{line}` failed{place}: {}", one_line(message)),
        "run it manually inside: unshare -Urnm bash (as root: unshare -nm bash)",
    )
}

fn program_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Returns the command of a batch that failed, and its message. `ip` and `tc` report the third command as `Command
/// failed -:3`.
fn who_failed<'a>(batch: &'a [String], stderr: &str) -> (&'a str, String) {
    let number = |line: &str| line.strip_prefix("Command failed -:")?.trim().parse::<usize>().ok()?.checked_sub(1);
    let failed = stderr.lines().find_map(number).and_then(|number| batch.get(number)).or(batch.last());
    let messages: Vec<&str> = stderr.lines().filter(|line| number(line).is_none()).collect();
    (failed.map_or("", String::as_str), messages.join("\n"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c))
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if is_plain(&word) { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_shell_metacharacters_are_quoted() {
        assert_eq!(quote(OsStr::new("10.77.1.2/24")), "10.77.1.2/24");
        assert_eq!(quote(OsStr::new("a file")), "'a file'");
        assert_eq!(quote(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quote(OsStr::new("$HOME")), "'$HOME'");
        assert_eq!(quote(OsStr::new("")), "''");
    }

    #[test]
    fn a_failed_command_of_a_batch_is_reported_with_its_output() {
        let mut shell = Shell::start().expect("namespaces");
        let lines =
            ["ip link set lo up", "ip link set no-such-link up", "ip link add late type veth"].map(str::to_owned);
        let error = shell.run_all(None, &lines).expect_err("there is no such link");
        assert_eq!(error.code, "command-failed");
        assert!(error.message.starts_with("`ip link set no-such-link up` failed: "), "{error}");
        assert!(error.message.contains("no-such-link\"") && !error.message.contains("-:2"), "{error}");
        assert!(shell.run(None, "ip link set late up").is_err());
    }
}
