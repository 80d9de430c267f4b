//! The process `thalweg-engine supervise`: runs one program, and terminates the processes that the program leaves
//! behind.
//!
//! ```text
//!  host ── stdin: order, `stop` ──► supervisor ──► program ──► whatever it starts
//!       ◄── stdout: answers ───────┘   └ inherits what the program leaves behind (PR_SET_CHILD_SUBREAPER)
//! ```
//!
//! It does so after the program's own exit, after `stop` (SIGTERM, then SIGKILL), and when standard input ends.

use super::processes::{descendants, kill_all, reap, signal_all, wait_for_none};
use super::sys;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, getpid, pidfd_open, set_child_subreaper};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
pub(super) const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// Timeout for the processes that a program leaves behind to exit on their own.
const LEFT_PATIENCE: Duration = Duration::from_millis(300);

/// Size limit of a file that a program writes, including its standard output, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 256 << 20;

pub(super) const STOP: &[u8] = b"stop\n";

/// The program that a supervisor runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Words of the command.
    pub words: Vec<String>,
    /// Working directory.
    pub folder: PathBuf,
    /// File for standard output.
    pub stdout: PathBuf,
    /// File for standard error.
    pub stderr: PathBuf,
}

/// Report of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The program cannot be started, with the reason.
    Refused(String),
    /// The program exited before it was stopped; processes that it started may still run.
    Exited,
    /// The program and its descendants have exited, or did not exit in time after SIGKILL.
    Ended(Ending),
}

/// Exit of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ending {
    /// Exit status; `None` if it did not exit normally.
    pub code: Option<i32>,
    /// Signal that killed it; `None` if no signal did.
    pub signal: Option<i32>,
    /// Number of processes that still ran after the program's exit and [`LEFT_PATIENCE`]; 0 after `stop`.
    pub left: usize,
    /// Whether the program received SIGTERM.
    pub stopped: bool,
    /// Whether the program or a descendant did not exit within [`TERM_PATIENCE`] after SIGTERM.
    pub ignored_term: bool,
}

impl Ending {
    /// Returns whether the program exited with status 0 and left no processes running.
    pub fn is_success(&self) -> bool {
        self.code == Some(0) && self.left == 0
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(out, "exited with status {code}")?,
            (None, Some(libc::SIGXFSZ)) => {
                write!(out, "was terminated because it wrote a file of more than {} MiB", MAX_FILE_BYTES >> 20)?;
            }
            (None, Some(signal)) => write!(out, "was terminated by signal {signal}")?,
            (None, None) => write!(out, "ended for an unknown reason")?,
        }
        if self.left > 0 {
            write!(out, " and left {} processes in the background", self.left)?;
        }
        Ok(())
    }
}

/// Executes the order on standard input.
///
/// # Errors
/// If the order is malformed, waiting for an event fails, or the last answer cannot be written.
pub fn supervise() -> io::Result<()> {
    let order: Order = serde_json::from_slice(&first_line()?)?;
    set_child_subreaper(Some(getpid()))?;
    let program = match start(&order) {
        Ok(program) => program,
        Err(why) => return say(&Answer::Refused(why)),
    };
    let mut ending = Ending::default();
    let mut note = |pid: Pid, status: WaitStatus| {
        if pid == program {
            (ending.code, ending.signal) = (status.exit_status(), status.terminating_signal());
        }
    };
    // An error is returned after the processes are terminated.
    let woken = wait_for_event(program);
    let (mut left, mut stopped, mut ignored_term) = (0, false, false);
    match woken {
        Ok(Event::Exited) => {
            // The write fails if the host has exited.
            let _ = say(&Answer::Exited);
            reap(&mut note);
            if !wait_for_none(LEFT_PATIENCE, &mut note) {
                left = descendants().len();
            }
        }
        Ok(Event::Stopped) => {
            stopped = true;
            signal_all(Signal::TERM);
            ignored_term = !wait_for_none(TERM_PATIENCE, &mut note);
        }
        Ok(Event::Abandoned) | Err(_) => {}
    }
    kill_all(&mut note);
    woken?;
    say(&Answer::Ended(Ending { left, stopped, ignored_term, ..ending }))
}

/// Reads the first line of standard input byte by byte, because a buffer would take later input, which is polled for.
fn first_line() -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    let (mut line, mut byte) = (Vec::new(), [0]);
    while rustix::io::read(&stdin, &mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0]);
    }
    Ok(line)
}

fn start(order: &Order) -> Result<Pid, String> {
    let Some((program, arguments)) = order.words.split_first() else { return Err("the command is empty".to_owned()) };
    let create = |file: &Path| File::create(file).map_err(|error| format!("{}: {error}", file.display()));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&order.folder).process_group(0);
    command.stdin(Stdio::null()).stdout(create(&order.stdout)?).stderr(create(&order.stderr)?);
    let child = sys::confine(&mut command, MAX_FILE_BYTES).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("`{program}` or its interpreter does not exist"),
        _ => format!("`{program}` cannot be started: {error}"),
    })?;
    Ok(Pid::from_child(&child))
}

enum Event {
    Exited,
    /// The host sent `stop`.
    Stopped,
    /// Standard input has ended.
    Abandoned,
}

fn wait_for_event(program: Pid) -> io::Result<Event> {
    let program = pidfd_open(program, PidfdFlags::empty())?;
    let stdin = io::stdin();
    loop {
        let mut fds = [PollFd::new(&program, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            let mut input = [0; 16];
            let count = rustix::io::read(&stdin, &mut input)?;
            return Ok(if count == 0 { Event::Abandoned } else { Event::Stopped });
        }
        if !fds[0].revents().is_empty() {
            return Ok(Event::Exited);
        }
    }
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, answer)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}
