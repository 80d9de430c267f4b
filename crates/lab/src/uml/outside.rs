//! The engine's side of a guest: starts it, monitors it, and receives its messages.

use super::folder::remove_left;
use super::supervisor::{Answer, Order};
use super::{Task, Traits, UmlKernel, Word, files};
use crate::error::Error;
use crate::net::choose_link_in_virtual_time;
use crate::net::holder::{alone, wait_for};
use crate::protocol::HostEvent;
use crate::run::{Failure, Job, Outcome, Rows};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Traces};
use thalweg_trace::Sink;
use thalweg_units::{Bytes, MTU, Span};

/// Timeout without a heartbeat from a guest, which writes none while it boots and creates a network.
const PATIENCE: Duration = Duration::from_secs(120);

const START: Duration = Duration::from_secs(30);

/// Timeout for a supervisor to end its guest and remove the guest's folder.
const END: Duration = Duration::from_secs(5);

const LOOK: Duration = Duration::from_millis(20);

/// Message of a kernel that cannot restore the floating-point registers of a program.
const SMALL_REGISTERS: &str = "ptrace set fp regs failed";

const LAST_LINES: usize = 8;

/// Memory of a guest without packets, in MiB.
const MIN_MEMORY_MIB: u64 = 512;

/// Maximum memory in MiB, because even unused pages need a `struct page`.
const MAX_MEMORY_MIB: u64 = 4096;

/// Checks whether a kernel with these traits can run an experiment.
///
/// # Errors
/// If the experiment's links cannot be emulated.
pub fn check(traits: &Traits, experiment: &Experiment, traces: &Traces) -> Result<(), Error> {
    choose_link_in_virtual_time(experiment, traces, &traits.qdiscs).map(|_| ())
}

/// Runs an experiment in a new guest, on a kernel with these traits.
///
/// # Errors
/// If the guest cannot run the experiment, or `is_cancelled` returned true.
pub fn run(
    kernel: &UmlKernel,
    traits: &Traits,
    job: &Job<'_>,
    engine: &Path,
    sink: &mut dyn Sink,
) -> Result<Outcome, Failure> {
    let task = Task::Run {
        experiment: Box::new(job.experiment.clone()),
        id: job.id.to_owned(),
        traces: job.traces.clone(),
        traits: traits.clone(),
        programs: job.programs.map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())),
        session: job.session.map(|session| Box::new(session.order.clone())),
    };
    let mut guest = Guest::start(kernel, engine, memory_mib(job.experiment, job.traces), &task, job.is_cancelled)?;
    let mut output = Output::of(&guest.folder, job.session.is_some());
    let status = guest.wait(&|| {
        output.borrow_mut().iter_mut().for_each(Output::copy);
        (job.is_cancelled)()
    })?;
    output.get_mut().iter_mut().for_each(Output::copy);
    let mut rows = Rows::new(job.experiment, sink);
    let last = guest.listen(&mut |word| match word {
        Word::Log(lines) => {
            (job.log)(&lines);
            None
        }
        Word::Row(event @ (HostEvent::Status(_) | HostEvent::Connection(_))) => {
            job.session.iter().for_each(|session| (session.show)(event.clone()));
            None
        }
        Word::Row(event) => rows.take(event).err().map(Word::Row),
        last => Some(last),
    });
    match last {
        Some(Word::Done(performance)) => {
            let logs = job.programs.map(|folder| (job.experiment, folder));
            Ok(Outcome { packets: rows.finish(&performance.untrustworthy, logs), performance })
        }
        Some(Word::Failed(error)) => Err(error.into()),
        _ => Err(guest.obituary(&status).into()),
    }
}

/// Copies the standard output or error of a session's command from a file in the guest's folder to this process.
struct Output {
    from: File,
    is_error: bool,
}

impl Output {
    fn of(folder: &Path, is_session: bool) -> RefCell<Vec<Output>> {
        let files = files::OUTPUT.into_iter().zip([false, true]).filter(|_| is_session);
        let open = |(name, is_error)| Some(Output { from: File::open(folder.join(name)).ok()?, is_error });
        RefCell::new(files.filter_map(open).collect())
    }

    fn copy(&mut self) {
        let _ = if self.is_error {
            io::copy(&mut self.from, &mut io::stderr())
        } else {
            io::copy(&mut self.from, &mut io::stdout())
        };
    }
}

/// Boots a kernel to query its traits.
///
/// # Errors
/// If the kernel does not boot, or cannot report its traits.
pub fn probe(kernel: &UmlKernel, engine: &Path) -> Result<Traits, Error> {
    let refusal = |failure| match failure {
        Failure::Failed(error) => error,
        Failure::Cancelled => Error::new("bad-guest", "the guest was stopped", "please report it"),
    };
    let mut guest = Guest::start(kernel, engine, MIN_MEMORY_MIB, &Task::Probe, &|| false).map_err(refusal)?;
    let status = guest.wait(&|| false).map_err(refusal)?;
    let last = guest.listen(&mut Some);
    match last {
        Some(Word::Traits(traits)) => Ok(traits),
        Some(Word::Failed(error)) => Err(error),
        _ => Err(guest.obituary(&status)),
    }
}

/// A guest and its supervisor. Dropping it ends both, and removes the guest's folder.
struct Guest {
    supervisor: Child,
    /// Keeps the supervisor's standard input open.
    input: Option<Sender<()>>,
    answers: Receiver<Answer>,
    folder: PathBuf,
}

impl Guest {
    fn start(
        kernel: &UmlKernel,
        engine: &Path,
        memory_mib: u64,
        task: &Task,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Guest, Failure> {
        let failed = |error: io::Error| {
            let message = format!("the supervisor of a guest ({}) cannot be started: {error}", engine.display());
            Failure::from(Error::new("no-process", message, "close other programs and try again"))
        };
        let task = serde_json::to_string(task).map_err(|error| failed(error.into()))?;
        let order = Order { kernel: kernel.program.clone(), memory_mib, task };
        let mut line = serde_json::to_vec(&order).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let mut command = Command::new(engine);
        command.args(["guest", "keep"]);
        let mut guest = Guest::of(alone(&mut command), line).map_err(failed)?;
        let began = Instant::now();
        match guest.next_answer(is_cancelled, &mut || began.elapsed() < START)? {
            Some(Answer::Started(folder)) => {
                guest.folder = folder;
                Ok(guest)
            }
            Some(Answer::Refused(why)) => {
                Err(Error::new("no-guest", why, "check that the temporary directory is writable and not full: df -h")
                    .into())
            }
            Some(Answer::Ended(_)) => Err(no_word().into()),
            None => {
                let message = format!("the supervisor of a guest did not answer within {} s", START.as_secs());
                Err(Error::new("no-guest", message, "close other programs and try again").into())
            }
        }
    }

    /// Starts a supervisor and sends it a line. Threads serve its pipes, so that a stopped supervisor does not block
    /// the caller.
    fn of(command: &mut Command, line: Vec<u8>) -> io::Result<Guest> {
        let mut supervisor = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take());
        let (input, is_open) = mpsc::channel::<()>();
        let (answer, answers) = mpsc::channel();
        let guest = Guest { supervisor, input: Some(input), answers, folder: PathBuf::new() };
        let (Some(mut stdin), Some(stdout)) = pipes else { return Err(io::Error::other("it has no pipes")) };
        thread::Builder::new().spawn(move || {
            if stdin.write_all(&line).is_ok() {
                let _ = is_open.recv();
            }
        })?;
        thread::Builder::new().spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            // A truncated line is not a valid answer.
            lines.map_while(|line| serde_json::from_str(&line).ok()).all(|answer_line| answer.send(answer_line).is_ok())
        })?;
        Ok(guest)
    }

    fn wait(&mut self, is_cancelled: &dyn Fn() -> bool) -> Result<String, Failure> {
        let pulse_file = self.folder.join(files::PULSE);
        let (mut pulse, mut alive) = (0, Instant::now());
        let mut is_alive = || {
            let now = fs::metadata(&pulse_file).map_or(0, |file| file.len());
            if now != pulse {
                (pulse, alive) = (now, Instant::now());
            }
            alive.elapsed() < PATIENCE
        };
        match self.next_answer(is_cancelled, &mut is_alive)? {
            Some(Answer::Ended(status)) => Ok(status),
            Some(Answer::Started(_) | Answer::Refused(_)) => Err(no_word().into()),
            None => {
                let silence = format!("the guest has not reported for {} s", PATIENCE.as_secs());
                Err(self.with_console(&silence).into())
            }
        }
    }

    /// Returns the supervisor's next answer; `None` once `is_alive` returns false.
    fn next_answer(
        &mut self,
        is_cancelled: &dyn Fn() -> bool,
        is_alive: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Answer>, Failure> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Disconnected) => return Err(no_word().into()),
                Err(RecvTimeoutError::Timeout) if is_cancelled() => return Err(Failure::Cancelled),
                Err(RecvTimeoutError::Timeout) if !is_alive() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Passes the guest's messages to `each` until it returns one, which is returned.
    fn listen(&self, each: &mut dyn FnMut(Word) -> Option<Word>) -> Option<Word> {
        let lines = BufReader::with_capacity(1 << 16, File::open(self.folder.join(files::WORDS)).ok()?).lines();
        lines.map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok()).find_map(each)
    }

    fn obituary(&self, status: &str) -> Error {
        self.with_console(&format!("the guest exited ({status}) before it had finished"))
    }

    fn with_console(&self, what: &str) -> Error {
        let console = fs::read(self.folder.join(files::CONSOLE)).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        if console.contains(SMALL_REGISTERS) {
            return Error::new(
                "small-registers",
                "the kernel of this guest was built for processors with fewer registers than this machine's",
                "build it again on this machine: thalweg kernel build",
            );
        }
        // Addresses of a call trace are omitted.
        let is_message = |line: &&str| !line.is_empty() && !line.contains("[<");
        let lines: Vec<&str> = console.lines().map(str::trim).filter(is_message).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
        let console = if last.is_empty() { "it printed nothing".to_owned() } else { format!("its last lines: {last}") };
        Error::new(
            "guest-died",
            format!("{what}; {console}"),
            "try again; if it happens again, please report it with these lines",
        )
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The supervisor exits at the end of its input.
        drop(self.input.take());
        if wait_for(&mut self.supervisor, END).is_none() {
            let _ = self.supervisor.kill();
            let _ = self.supervisor.wait();
        }
        // A supervisor that was killed has not removed the folder.
        if !self.folder.as_os_str().is_empty() {
            remove_left(&self.folder);
        }
    }
}

fn no_word() -> Error {
    Error::new(
        "no-guest",
        "the supervisor of a guest exited without an answer",
        "try again; if it happens again, please report it",
    )
}

/// Returns the memory of a guest in MiB: a fixed amount for the system, and a multiple of the forward link's buffer and
/// bandwidth-delay product; at most [`MAX_MEMORY_MIB`]. Unlimited links and traces count as zero bytes.
fn memory_mib(experiment: &Experiment, traces: &Traces) -> u64 {
    /// Memory per byte on the link, because buffers of the sender and the receiver hold packets too.
    const TIMES: u64 = 6;
    let forward = &experiment.forward;
    let points = |link: &Link| link.profile.as_ref().and_then(|name| traces.profiles.get(name)).map(|it| &it.points);
    let rate = match &forward.capacity {
        Capacity::Steps { steps } => steps.iter().map(|step| step.rate_bps).max(),
        Capacity::Profile {} => points(forward).and_then(|points| points.iter().filter_map(|it| it.rate_bps).max()),
        Capacity::Unlimited | Capacity::Trace { .. } => None,
    };
    let longest = |link: &Link| {
        let delays = points(link).into_iter().flatten().filter_map(|point| point.delay_ns);
        delays.fold(link.delay_ns, Span::max)
    };
    let rtt = experiment.rtt_ns.max(longest(forward) + longest(&experiment.reverse));
    let far = experiment.flows.iter().map(|flow| flow.extra_rtt_ns).max().unwrap_or_default();
    let packet_bytes = rate.map_or(0, |rate| {
        let buffer = match forward.buffer {
            Buffer::Bytes { bytes } => bytes,
            Buffer::Packets { packets } => Bytes(packets.0.saturating_mul(MTU.0)),
        };
        rate.bytes_in(rtt + far).0.saturating_add(buffer.0)
    });
    (MIN_MEMORY_MIB + (packet_bytes.saturating_mul(TIMES) >> 20)).min(MAX_MEMORY_MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest_of(script: &str) -> Guest {
        Guest::of(Command::new("sh").args(["-c", script]), b"task\n".to_vec()).unwrap()
    }

    #[test]
    fn both_answers_of_a_guest_that_ends_at_once_are_received() {
        let mut guest = guest_of(r#"printf '{"Started":"/nowhere"}\n{"Ended":"exit status: 3"}\n'; read -r _"#);
        let first = guest.next_answer(&|| false, &mut || true);
        assert!(matches!(first, Ok(Some(Answer::Started(_)))));
        assert_eq!(guest.wait(&|| false).ok().as_deref(), Some("exit status: 3"));
    }

    #[test]
    fn a_stopped_supervisor_delays_neither_a_cancelled_run_nor_its_end() {
        // The script does not read its order, which exceeds a pipe's capacity.
        let began = Instant::now();
        let mut guest = Guest::of(Command::new("sh").args(["-c", "kill -STOP $$"]), vec![b' '; 1 << 20]).unwrap();
        let answer = guest.next_answer(&|| began.elapsed() > Duration::from_millis(100), &mut || true);
        assert!(matches!(answer, Err(Failure::Cancelled)));
        drop(guest);
        assert!(began.elapsed() < 20 * END, "{:?}", began.elapsed());
    }

    #[test]
    fn the_folder_of_a_killed_supervisor_is_removed() {
        let folder = tempfile::tempdir().unwrap().keep();
        fs::write(folder.join(files::WORDS), "").unwrap();
        let mut guest = guest_of("kill -KILL $$");
        guest.folder = folder.clone();
        assert!(guest.wait(&|| false).is_err());
        drop(guest);
        assert!(!folder.exists());
    }
}
