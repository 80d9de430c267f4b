//! The host processes of an experiment, which receive commands and report events.
//!
//! Threads serve the pipes, so that a host that does not read cannot block the engine. Dropping the value closes the
//! standard input of the hosts, on which they exit; those that have not exited after [`EXIT_TIMEOUT`] are killed with
//! their process group.

use super::Failure;
use crate::error::Error;
use crate::net::holder::wait_for;
use crate::protocol::{Command, HostEvent};
use crate::vm;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of events between two checks for an interruption.
const MAX_EVENTS_PER_CHECK: usize = 1024;

/// Timeout for a host to exit after its standard input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of lines of a host's standard error in error messages.
const MAX_ERROR_LINES: usize = 10;

/// Maximum number of lines of a guest's console that are kept; a kernel prints the reason of a panic before its trace.
const MAX_CONSOLE_LINES: usize = 100;

/// The host processes of an experiment.
pub struct HostProcesses<'a> {
    hosts: Vec<Host>,
    output: Receiver<(usize, Output)>,
    output_sender: Sender<(usize, Output)>,
    is_cancelled: &'a dyn Fn() -> bool,
    events_since_check: usize,
}

/// Kind of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process with a separate standard error.
    Process,
    /// A guest, whose standard error is its console.
    Guest,
}

struct Host {
    name: String,
    kind: Kind,
    /// The process; `None` if the host runs in the guest of another host.
    child: Option<Child>,
    /// Lines for the host's standard input; `None` once it is closed.
    input: Option<Sender<String>>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Closed at the end of standard error; `None` if that is the console of another host.
    errors_end: Option<Receiver<()>>,
}

enum Output {
    Event(HostEvent),
    /// A line that is not a valid event.
    Invalid(String),
    /// Standard output was closed.
    End,
}

impl Host {
    fn console(&self) -> String {
        let lines: Vec<String> = self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        vm::last_lines(&lines.join("\n"))
    }
}

impl<'a> HostProcesses<'a> {
    /// Returns an empty group. Waits end with [`Failure::Cancelled`] if `is_cancelled` returns true.
    pub fn new(is_cancelled: &'a dyn Fn() -> bool) -> HostProcesses<'a> {
        let (output_sender, output) = mpsc::channel();
        HostProcesses { hosts: Vec::new(), output, output_sender, is_cancelled, events_since_check: 0 }
    }

    /// Adds a host; hosts are numbered from 0. `child` must have pipes for input and output.
    ///
    /// # Errors
    /// If `child` has no pipes, or the system refuses to create a thread.
    pub fn add(&mut self, name: &str, mut child: Child, kind: Kind) -> Result<(), Error> {
        let number = self.hosts.len();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (input, lines) = mpsc::channel();
        let (errors_open, errors_end) = mpsc::channel();
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        // Added first, so that it is terminated with the others if a thread cannot be created.
        let errors_of = Arc::clone(&errors);
        self.hosts.push(Host {
            name: name.to_owned(),
            kind,
            child: Some(child),
            input: Some(input),
            errors: errors_of,
            errors_end: Some(errors_end),
        });
        let (Some(stdin), Some(stdout), stderr) = pipes else {
            return Err(Error::new("bug", format!("the host `{name}` was started without pipes"), "please report it"));
        };
        let output_sender = self.output_sender.clone();
        start_thread(name, move || write_lines(stdin, &lines))?;
        start_thread(name, move || read_events(stdout, |output| output_sender.send((number, output)).is_ok()))?;
        start_thread(name, move || {
            let max_lines = if kind == Kind::Guest { MAX_CONSOLE_LINES } else { MAX_ERROR_LINES };
            keep_last_lines(stderr, max_lines, &errors);
            drop(errors_open);
        })
    }

    /// Adds a host that runs in the guest of the host `guest`, and is connected by `socket`.
    ///
    /// # Errors
    /// If the system refuses to create a thread or a descriptor.
    pub fn add_in_guest(&mut self, name: &str, socket: UnixStream, guest: usize) -> Result<(), Error> {
        let number = self.hosts.len();
        let (input, lines) = mpsc::channel();
        let errors = Arc::clone(&self.hosts[guest].errors);
        let (name, kind) = (name.to_owned(), Kind::Guest);
        let reader = socket.try_clone().map_err(|error| no_thread(&name, &error))?;
        let output_sender = self.output_sender.clone();
        start_thread(&name, move || write_lines(socket, &lines))?;
        start_thread(&name, move || read_events(reader, |output| output_sender.send((number, output)).is_ok()))?;
        self.hosts.push(Host { name, kind, child: None, input: Some(input), errors, errors_end: None });
        Ok(())
    }

    /// Sends a command to a host. If the host no longer reads, [`HostProcesses::receive`] returns the reason.
    pub fn send(&self, number: usize, command: &Command) {
        let mut line = serde_json::to_string(command).expect("commands are plain data");
        line.push('\n');
        if let Some(input) = &self.hosts[number].input {
            let _ = input.send(line);
        }
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the process ids of the hosts, except those that run in the guest of another host.
    pub fn pids(&self) -> Vec<u32> {
        self.hosts.iter().filter_map(|host| Some(host.child.as_ref()?.id())).collect()
    }

    /// Disables the check for an interruption in later waits.
    pub fn finish_regardless(&mut self) {
        self.is_cancelled = &|| false;
    }

    /// Returns the name of a host.
    pub fn name(&self, number: usize) -> &str {
        &self.hosts[number].name
    }

    /// Returns the next event with the host's number, or `None` at `until`.
    ///
    /// # Errors
    /// If a host fails, or the user requested a stop.
    pub fn receive(&mut self, until: Option<Instant>) -> Result<Option<(usize, HostEvent)>, Failure> {
        match self.try_receive()? {
            Some((number, output)) => self.event_of(number, output).map(Some),
            None => self.wait(until),
        }
    }

    /// Like [`HostProcesses::receive`], with a relative timeout.
    ///
    /// # Errors
    /// Those of [`HostProcesses::receive`].
    pub fn receive_within(&mut self, patience: Duration) -> Result<Option<(usize, HostEvent)>, Failure> {
        match self.try_receive()? {
            Some((number, output)) => self.event_of(number, output).map(Some),
            None => self.wait(Some(Instant::now() + patience)),
        }
    }

    /// Returns output that is already queued. The clock and the interruption are not checked for each event, to save
    /// time.
    fn try_receive(&mut self) -> Result<Option<(usize, Output)>, Failure> {
        self.events_since_check += 1;
        if self.events_since_check > MAX_EVENTS_PER_CHECK {
            self.check_cancelled()?;
        }
        match self.output.try_recv() {
            Ok(output) => Ok(Some(output)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => unreachable!("we hold a sender ourselves"),
        }
    }

    fn check_cancelled(&mut self) -> Result<(), Failure> {
        self.events_since_check = 0;
        if (self.is_cancelled)() { Err(Failure::Cancelled) } else { Ok(()) }
    }

    fn wait(&mut self, until: Option<Instant>) -> Result<Option<(usize, HostEvent)>, Failure> {
        loop {
            self.check_cancelled()?;
            let left = until.map_or(CHECK_INTERVAL, |until| until.saturating_duration_since(Instant::now()));
            match self.output.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok((number, output)) => return self.event_of(number, output).map(Some),
                Err(RecvTimeoutError::Timeout) if left <= CHECK_INTERVAL && until.is_some() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender ourselves"),
            }
        }
    }

    fn event_of(&mut self, number: usize, output: Output) -> Result<(usize, HostEvent), Failure> {
        match output {
            Output::Event(HostEvent::Failed(error)) => Err(error.into()),
            Output::Event(event) => Ok((number, event)),
            Output::Invalid(line) => Err(self.invalid_event_error(number, &line).into()),
            Output::End => Err(self.died_error(number).into()),
        }
    }

    /// Returns the error for hosts that do not report an event in time.
    pub fn timeout_error(&self, numbers: &[usize], awaited: &str, patience: Duration) -> Error {
        let names: Vec<&str> = numbers.iter().map(|number| self.name(*number)).collect();
        let mut message =
            format!("no `{awaited}` event from the host {} within {} s", names.join(", "), patience.as_secs());
        let guests = numbers.iter().map(|number| &self.hosts[*number]).filter(|host| host.kind == Kind::Guest);
        for guest in guests {
            message.push_str(&format!("; guest {}: {}", guest.name, guest.console()));
        }
        Error::new("host-silent", message, "close other programs, or run fewer experiments at a time (--threads 1)")
    }

    fn invalid_event_error(&self, number: usize, line: &str) -> Error {
        let name = self.name(number);
        let hint = "run the same command again, in case thalweg-engine was replaced during the run; otherwise please \
                    report it";
        Error::new("bad-host", format!("the host `{name}` sent an invalid event: {line}"), hint)
    }

    fn died_error(&mut self, number: usize) -> Error {
        let host = &mut self.hosts[number];
        // The last lines may still be in the pipe.
        let _ = host.errors_end.as_ref().map(|end| end.recv_timeout(EXIT_TIMEOUT));
        if host.kind == Kind::Guest {
            let message = format!("the guest of the host `{}` exited; {}", host.name, host.console());
            return Error::new(
                "guest-died",
                message,
                "run the same command again; if it happens again, please report it",
            );
        }
        let words: Vec<String> = host.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(" | ") };
        let status = host.child.as_mut().and_then(|child| wait_for(child, EXIT_TIMEOUT));
        let end = status.map_or_else(|| "no exit code yet".to_owned(), |status| status.to_string());
        let hint = "check the kernel's messages (dmesg), then run the same command again";
        Error::new("host-died", format!("the host `{}` died ({end}); its last output: {words}", host.name), hint)
    }
}

impl Drop for HostProcesses<'_> {
    fn drop(&mut self) {
        // Closes all inputs first, so that the hosts exit concurrently.
        self.hosts.iter_mut().for_each(|host| drop(host.input.take()));
        let until = Instant::now() + EXIT_TIMEOUT;
        for child in self.hosts.iter_mut().filter_map(|host| host.child.as_mut()) {
            if wait_for(child, until.saturating_duration_since(Instant::now())).is_none() {
                // Kills its child processes too; the call fails if the process has exited.
                let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Returns the error for an event that a host reports at the wrong time.
pub fn unexpected(processes: &HostProcesses<'_>, number: usize, event: &HostEvent) -> Error {
    unexpected_of(processes.name(number), event)
}

/// Like [`unexpected`], for the host of this name.
pub fn unexpected_of(name: &str, event: &HostEvent) -> Error {
    Error::new("bad-host", format!("the host `{name}` sent an unexpected event: {event:?}"), "please report it")
}

fn start_thread(host: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().name(format!("host {host}")).spawn(work);
    started.map(drop).map_err(|error| no_thread(host, &error))
}

fn no_thread(host: &str, error: &io::Error) -> Error {
    let message = format!("no thread can be started for the host `{host}`: {error}");
    Error::new("no-resources", message, "close other programs, or raise ulimit -u")
}

fn write_lines(mut stdin: impl Write, lines: &Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_events(stdout: impl Read, mut deliver: impl FnMut(Output) -> bool) {
    for line in BufReader::with_capacity(1 << 16, stdout).lines() {
        let Ok(line) = line else { break };
        let output = serde_json::from_str(&line).map_or_else(|_| Output::Invalid(line), Output::Event);
        if !deliver(output) {
            return;
        }
    }
    deliver(Output::End);
}

fn keep_last_lines(stderr: Option<ChildStderr>, max_lines: usize, kept: &Mutex<VecDeque<String>>) {
    let Some(stderr) = stderr else { return };
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == max_lines {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim().to_owned());
    }
}

#[cfg(test)]
mod tests;
