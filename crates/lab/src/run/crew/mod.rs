//! The hosts of an experiment: processes that are told what to do, and answer.
//!
//! Every wait has an end: a host that says nothing, dies, or does not let itself be told anything stops the experiment,
//! with its own last words. Pipes are served by threads, so that a host that does not read cannot hold us up. Dropped,
//! a crew ends: standard inputs are closed, which ends hosts, and who does not end then is killed, by its process id;
//! each has a process group of its own.

use super::Failure;
use crate::error::Error;
use crate::net::holder::wait_for;
use crate::protocol::{Command, HostEvent};
use crate::vm;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Things that are heard between two looks when one comes upon the other: a few milliseconds' worth.
const AT_ONCE: usize = 1024;

/// Timeout for a host to exit when it is no longer needed.
const END: Duration = Duration::from_millis(500);

/// Lines of a host's standard error that are kept for the day it dies.
const LAST_WORDS: usize = 10;

/// The same of a guest's console: a kernel that panics says why before it tells all that it knows.
const LAST_OF_CONSOLE: usize = 100;

/// Processes that play hosts.
pub struct Crew<'a> {
    members: Vec<Member>,
    said: Receiver<(usize, Said)>,
    say: Sender<(usize, Said)>,
    is_cancelled: &'a dyn Fn() -> bool,
    /// Messages received since the last check for an interruption.
    heard_at_once: usize,
}

/// What plays a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process, whose standard error is its own.
    Process,
    /// A guest, whose standard error is its console.
    Guest,
}

struct Member {
    name: String,
    kind: Kind,
    child: Child,
    /// Lines for its standard input; without it, standard input is closed.
    pen: Option<Sender<String>>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Ends when standard error does.
    errors_end: Receiver<()>,
}

enum Said {
    Event(HostEvent),
    /// No event.
    Nonsense(String),
    /// Nothing more.
    End,
}

impl Member {
    /// What the console of a guest shows last.
    fn console(&self) -> String {
        let lines: Vec<String> = self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        vm::last_lines(&lines.join("\n"))
    }
}

impl<'a> Crew<'a> {
    /// No hosts yet. Every wait asks `is_cancelled` now and then.
    pub fn new(is_cancelled: &'a dyn Fn() -> bool) -> Crew<'a> {
        let (say, said) = mpsc::channel();
        Crew { members: Vec::new(), said, say, is_cancelled, heard_at_once: 0 }
    }

    /// Takes a host on; its number is the count of those before. `child` has pipes for input and output.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn add(&mut self, name: &str, mut child: Child, kind: Kind) -> Result<(), Error> {
        let number = self.members.len();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (pen, lines) = mpsc::channel();
        let (errors_open, errors_end) = mpsc::channel();
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        // First of all, so that it ends with the others should a thread be refused.
        let errors_of = Arc::clone(&errors);
        let member = Member { name: name.to_owned(), kind, child, pen: Some(pen), errors: errors_of, errors_end };
        self.members.push(member);
        let (Some(stdin), Some(stdout), stderr) = pipes else {
            return Err(Error::new("bug", format!("the host `{name}` was started without pipes"), "please report it"));
        };
        let say = self.say.clone();
        start_thread(name, move || write_lines(stdin, &lines))?;
        start_thread(name, move || read_events(stdout, |said| say.send((number, said)).is_ok()))?;
        start_thread(name, move || {
            let many = if kind == Kind::Guest { LAST_OF_CONSOLE } else { LAST_WORDS };
            keep_last_lines(stderr, many, &errors);
            drop(errors_open);
        })
    }

    /// Tells a host something. If it does not listen any more, [`Crew::hear`] will say why.
    pub fn tell(&self, number: usize, command: &Command) {
        let mut line = serde_json::to_string(command).expect("commands are plain data");
        line.push('\n');
        if let Some(pen) = &self.members[number].pen {
            let _ = pen.send(line);
        }
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Process ids of all hosts.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.child.id()).collect()
    }

    /// From now on, no wait asks whether to stop.
    pub fn finish_regardless(&mut self) {
        self.is_cancelled = &|| false;
    }

    /// The name of a host.
    pub fn name(&self, number: usize) -> &str {
        &self.members[number].name
    }

    /// The next thing that any host says, and its number; nothing at `until`.
    ///
    /// # Errors
    /// If a host cannot continue, or the user asked to stop.
    pub fn hear(&mut self, until: Option<Instant>) -> Result<Option<(usize, HostEvent)>, Failure> {
        match self.heard()? {
            Some((number, said)) => self.understand(number, said).map(Some),
            None => self.wait(until),
        }
    }

    /// The same for at most this long.
    ///
    /// # Errors
    /// As [`Crew::hear`].
    pub fn hear_within(&mut self, patience: Duration) -> Result<Option<(usize, HostEvent)>, Failure> {
        match self.heard()? {
            Some((number, said)) => self.understand(number, said).map(Some),
            None => self.wait(Some(Instant::now() + patience)),
        }
    }

    /// What has been said already. Hosts tell rows by the ten thousand: for each of them there is neither a look at the
    /// clock nor a question whether to stop, which inside a guest take longer than the row.
    fn heard(&mut self) -> Result<Option<(usize, Said)>, Failure> {
        self.heard_at_once += 1;
        if self.heard_at_once > AT_ONCE {
            self.look()?;
        }
        match self.said.try_recv() {
            Ok(said) => Ok(Some(said)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => unreachable!("we hold a sender ourselves"),
        }
    }

    fn look(&mut self) -> Result<(), Failure> {
        self.heard_at_once = 0;
        if (self.is_cancelled)() { Err(Failure::Cancelled) } else { Ok(()) }
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<(usize, HostEvent)>, Failure> {
        loop {
            self.look()?;
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            match self.said.recv_timeout(left.min(LOOK)) {
                Ok((number, said)) => return self.understand(number, said).map(Some),
                Err(RecvTimeoutError::Timeout) if left <= LOOK && until.is_some() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender ourselves"),
            }
        }
    }

    fn understand(&mut self, number: usize, said: Said) -> Result<(usize, HostEvent), Failure> {
        match said {
            Said::Event(HostEvent::Failed(error)) => Err(error.into()),
            Said::Event(event) => Ok((number, event)),
            Said::Nonsense(line) => Err(self.nonsense(number, &line).into()),
            Said::End => Err(self.obituary(number).into()),
        }
    }

    /// The error of hosts that say nothing although they should.
    pub fn silence(&self, numbers: &[usize], awaited: &str, patience: Duration) -> Error {
        let names: Vec<&str> = numbers.iter().map(|number| self.name(*number)).collect();
        let mut message = format!("no `{awaited}` from the host {} within {} s", names.join(", "), patience.as_secs());
        let guests = numbers.iter().map(|number| &self.members[*number]).filter(|member| member.kind == Kind::Guest);
        for guest in guests {
            message.push_str(&format!("; of the guest {}, {}", guest.name, guest.console()));
        }
        Error::new("host-silent", message, "close other programs, or run fewer experiments at a time (--threads 1)")
    }

    /// The error of a host that sends an invalid event.
    fn nonsense(&self, number: usize, line: &str) -> Error {
        let name = self.name(number);
        let hint = "thalweg-engine was replaced while it ran? Give the same command again; else, please report it";
        Error::new("bad-host", format!("the host `{name}` sent an invalid event: {line}"), hint)
    }

    /// The error of a host that died.
    fn obituary(&mut self, number: usize) -> Error {
        let member = &mut self.members[number];
        // Its last words may still be on their way.
        let _ = member.errors_end.recv_timeout(END);
        if member.kind == Kind::Guest {
            let message = format!("the guest that plays the host `{}` ended; {}", member.name, member.console());
            return Error::new(
                "guest-died",
                message,
                "give the same command again; if it happens again, please report it",
            );
        }
        let words: Vec<String> = member.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(" | ") };
        let end =
            wait_for(&mut member.child, END).map_or_else(|| "no exit code yet".to_owned(), |status| status.to_string());
        let hint = "look for messages of the kernel (dmesg) that fit, then give the same command again";
        Error::new("host-died", format!("the host `{}` died ({end}); its last words: {words}", member.name), hint)
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        // All at once, then one after another.
        self.members.iter_mut().for_each(|member| drop(member.pen.take()));
        let until = Instant::now() + END;
        for member in &mut self.members {
            if wait_for(&mut member.child, until.saturating_duration_since(Instant::now())).is_none() {
                // With its child processes; each call fails if the process has exited.
                let _ = kill_process_group(Pid::from_child(&member.child), Signal::KILL);
                let _ = member.child.kill();
                let _ = member.child.wait();
            }
        }
    }
}

/// Returns the error for an event that a host reports at the wrong time.
pub fn unexpected(crew: &Crew<'_>, number: usize, event: &HostEvent) -> Error {
    unexpected_of(crew.name(number), event)
}

/// The same for the host of this name.
pub fn unexpected_of(name: &str, event: &HostEvent) -> Error {
    Error::new("bad-host", format!("the host `{name}` said at the wrong time: {event:?}"), "please report it")
}

fn start_thread(host: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().name(format!("host {host}")).spawn(work);
    started.map(drop).map_err(|error| {
        let message = format!("the system refuses a thread for the host `{host}`: {error}");
        Error::new("no-resources", message, "close other programs, or raise ulimit -u")
    })
}

/// Ends when there are no more lines, or the reader has closed the pipe.
fn write_lines(mut stdin: ChildStdin, lines: &Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// Ends when standard output does, or the receiver is closed.
fn read_events(stdout: ChildStdout, mut say: impl FnMut(Said) -> bool) {
    for line in BufReader::with_capacity(1 << 16, stdout).lines() {
        let Ok(line) = line else { break };
        let said = serde_json::from_str(&line).map_or_else(|_| Said::Nonsense(line), Said::Event);
        if !say(said) {
            return;
        }
    }
    say(Said::End);
}

fn keep_last_lines(stderr: Option<ChildStderr>, many: usize, kept: &Mutex<VecDeque<String>>) {
    let Some(stderr) = stderr else { return };
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == many {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim().to_owned());
    }
}

#[cfg(test)]
mod tests;
