//! What the engine does with a guest: starts it, watches it, takes what it says.

use super::keeper::{Answer, Order};
use super::{Kernel, Task, Traits, Word, files};
use crate::error::Error;
use crate::net::holder::alone;
use crate::run::{Failure, Job, Outcome, Performance, Rows};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link};
use thalweg_trace::Sink;
use thalweg_units::{Bytes, MTU, Rate};

/// How long a guest may give no sign of life. Its first process gives one every 50 ms of virtual time once the hosts are
/// at work, which is a fraction of a second at any rate that a path can have; before that it boots and makes a network,
/// which takes seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at whether somebody wants to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Lines of the console that are told when a guest has died.
const LAST_LINES: usize = 8;

/// Memory that a guest has besides what its path holds.
const LEAST_MEMORY_MIB: u64 = 512;

/// More than this is not asked for: pages that are never used cost nothing, but their descriptions do.
const MOST_MEMORY_MIB: u64 = 4096;

/// Runs an experiment in a guest of its own, on a kernel that has this.
///
/// # Errors
/// The guest cannot be started, dies, or cannot run the experiment; or `is_cancelled` said so.
pub fn run(kernel: &Kernel, traits: &Traits, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
    let task = Task::Run {
        experiment: Box::new(job.experiment.clone()),
        id: job.id.to_owned(),
        traces: job.traces.clone(),
        traits: traits.clone(),
    };
    let mut guest = Guest::start(kernel, job.engine, memory_mib(job.experiment), &task)?;
    let status = guest.wait(job.is_cancelled)?;
    let mut rows = Rows::new(job.experiment, sink);
    let last = guest.listen(&mut |word| match word {
        Word::Log(lines) => {
            (job.log)(&lines);
            None
        }
        Word::Row(event) => rows.take(event).err().map(Word::Row),
        last => Some(last),
    });
    match last {
        Some(Word::Done(Performance { lasted, measured, untrustworthy })) => {
            let packets = rows.finish(&untrustworthy);
            Ok(Outcome { lasted, packets, measured, untrustworthy })
        }
        Some(Word::Failed(error)) => Err(error.into()),
        _ => Err(guest.obituary(&status).into()),
    }
}

/// What a kernel has: boots it to ask.
///
/// # Errors
/// It does not boot, or cannot say.
pub fn probe(kernel: &Kernel, engine: &Path) -> Result<Traits, Error> {
    let told = |failure| match failure {
        Failure::Failed(error) => error,
        Failure::Cancelled => Error::new("bad-guest", "the guest was stopped", "please report it"),
    };
    let mut guest = Guest::start(kernel, engine, LEAST_MEMORY_MIB, &Task::Probe).map_err(told)?;
    let status = guest.wait(&|| false).map_err(told)?;
    let last = guest.listen(&mut Some);
    match last {
        Some(Word::Traits(traits)) => Ok(traits),
        Some(Word::Failed(error)) => Err(error),
        _ => Err(guest.obituary(&status)),
    }
}

/// A guest, and its keeper. Dropping it ends both, and waits for that.
struct Guest {
    keeper: Child,
    said: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Guest {
    fn start(kernel: &Kernel, engine: &Path, memory_mib: u64, task: &Task) -> Result<Guest, Failure> {
        let failed = |error: io::Error| {
            let message = format!("a keeper of guests ({}) cannot be started: {error}", engine.display());
            Failure::from(Error::new("no-process", message, "close other programs, then try again"))
        };
        let task = serde_json::to_string(task).map_err(|error| failed(error.into()))?;
        let order = Order { kernel: kernel.program.clone(), memory_mib, task };
        let mut line = serde_json::to_vec(&order).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let mut command = Command::new(engine);
        command.args(["guest", "keep"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = alone(&mut command).spawn().map_err(failed)?;
        let stdout = keeper.stdout.take().ok_or_else(|| failed(io::Error::other("it has no pipes")))?;
        let mut guest = Guest { keeper, said: BufReader::new(stdout), folder: PathBuf::new() };
        // Its pipe ends with the guest, so it is kept.
        if let Some(stdin) = guest.keeper.stdin.as_mut() {
            stdin.write_all(&line).map_err(failed)?;
        }
        match guest.hear()? {
            Answer::Started(folder) => {
                guest.folder = folder;
                Ok(guest)
            }
            Answer::Refused(why) => {
                Err(Error::new("no-guest", why, "see whether the temporary folder can be written: df -h").into())
            }
            Answer::Ended(_) => Err(no_word().into()),
        }
    }

    /// Waits until the guest has ended by itself, and says how.
    fn wait(&mut self, is_cancelled: &dyn Fn() -> bool) -> Result<String, Failure> {
        let (mut pulse, mut alive) = (0, Instant::now());
        loop {
            if self.has_said(&LOOK) {
                return match self.hear()? {
                    Answer::Ended(status) => Ok(status),
                    Answer::Started(_) | Answer::Refused(_) => Err(no_word().into()),
                };
            }
            if is_cancelled() {
                return Err(Failure::Cancelled);
            }
            let now = fs::metadata(self.folder.join(files::PULSE)).map_or(0, |file| file.len());
            if now != pulse {
                (pulse, alive) = (now, Instant::now());
            }
            if alive.elapsed() > PATIENCE {
                let silence = format!("the guest has given no sign of life for {} s", PATIENCE.as_secs());
                return Err(self.with_console(&silence).into());
            }
        }
    }

    /// Whether the keeper says something within this time. Two answers may have been read at once, and then the pipe is
    /// empty although one of them has not been heard.
    fn has_said(&self, within: &Timespec) -> bool {
        let pipe = PollFd::new(self.said.get_ref(), PollFlags::IN);
        !self.said.buffer().is_empty() || poll(&mut [pipe], Some(within)).is_ok_and(|ready| ready > 0)
    }

    /// The keeper's next answer.
    fn hear(&mut self) -> Result<Answer, Error> {
        let mut line = String::new();
        // A line that is cut short is no answer, either.
        self.said.read_line(&mut line).ok().and_then(|_| serde_json::from_str(&line).ok()).ok_or_else(no_word)
    }

    /// Hands over what the guest has said, until something is the last of it.
    fn listen(&self, each: &mut dyn FnMut(Word) -> Option<Word>) -> Option<Word> {
        let lines = BufReader::with_capacity(1 << 16, File::open(self.folder.join(files::WORDS)).ok()?).lines();
        lines.map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok()).find_map(each)
    }

    /// Of a guest that ended without a last word.
    fn obituary(&self, status: &str) -> Error {
        self.with_console(&format!("the guest ended ({status}) before it had finished"))
    }

    fn with_console(&self, what: &str) -> Error {
        let console = fs::read(self.folder.join(files::CONSOLE)).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        // Addresses of a call trace tell nobody anything.
        let is_told = |line: &&str| !line.is_empty() && !line.contains("[<");
        let lines: Vec<&str> = console.lines().map(str::trim).filter(is_told).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
        let said = if last.is_empty() { "and printed nothing".to_owned() } else { format!("its last lines: {last}") };
        Error::new(
            "guest-died",
            format!("{what}; {said}"),
            "try again; if it happens again, please report it with these lines",
        )
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The end of its input is what it waits for.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn no_word() -> Error {
    Error::new(
        "no-guest",
        "the keeper of a guest ended without a word",
        "try again; if it happens again, please report it",
    )
}

/// What a guest needs: every packet that the path can hold, several times (in the sender's buffer, on its way, in the
/// receiver's), and itself.
fn memory_mib(experiment: &Experiment) -> u64 {
    /// Memory of a packet over its size, in the three places where it can be.
    const TIMES: u64 = 6;
    let held = |link: &Link| {
        let Capacity::Steps { steps } = &link.capacity else { return Bytes::ZERO };
        let rate = steps.iter().map(|step| step.rate_bps).max().unwrap_or(Rate::ZERO);
        let buffer = match link.buffer {
            Buffer::Bytes { bytes } => bytes,
            Buffer::Packets { packets } => Bytes(packets.0.saturating_mul(MTU.0)),
        };
        let far = experiment.flows.iter().map(|flow| flow.extra_rtt_ns).max().unwrap_or_default();
        Bytes(rate.bytes_in(experiment.rtt_ns + far).0.saturating_add(buffer.0))
    };
    let held = held(&experiment.forward).0.saturating_mul(TIMES) >> 20;
    (LEAST_MEMORY_MIB + held).min(MOST_MEMORY_MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_guest_that_ends_at_once_is_heard_to_end() {
        // A pipe takes both lines in one write, so that one read takes both from it.
        let says = r#"printf '{"Started":"/nowhere"}\n{"Ended":"exit status: 3"}\n'; read -r _"#;
        let mut command = Command::new("sh");
        let mut keeper = command.args(["-c", says]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(keeper.stdout.take().unwrap());
        let mut guest = Guest { keeper, said, folder: PathBuf::new() };
        assert!(matches!(guest.hear(), Ok(Answer::Started(_))));
        let looks = Cell::new(0);
        let is_tired = || looks.replace(looks.get() + 1) > 50;
        assert_eq!(guest.wait(&is_tired).ok().as_deref(), Some("exit status: 3"));
    }
}
