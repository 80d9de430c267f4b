//! The first process of a guest: `thalweg-engine guest begin`.

use super::{Task, Traits, Word, files, sys};
use crate::error::Error;
use crate::net::{holder, probe, sysctl};
use crate::protocol::HostEvent;
use crate::run::{self, Failure, HostSetup, Job};
use crate::session::Session;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Path of the guest's folder before the guest mounts `/proc`. Until then the machine's `/proc` is visible, in which
/// `self` is the guest's kernel, whose working directory is the folder.
pub(super) const FOLDER: &str = "/proc/self/cwd";

struct Messages {
    words: RefCell<BufWriter<File>>,
}

impl Messages {
    fn say(&self, word: &Word) -> io::Result<()> {
        let mut words = self.words.borrow_mut();
        serde_json::to_writer(&mut *words, word)?;
        words.write_all(b"\n")
    }
}

/// Executes the task in the folder, then shuts the guest down.
///
/// # Errors
/// If this is not the first process of a guest, the folder cannot be read or written, or the shutdown fails.
pub fn begin() -> io::Result<()> {
    if !rustix::process::getpid().is_init() {
        return Err(io::Error::other("this command only runs as the first process of a guest, started by its kernel"));
    }
    let folder = fs::canonicalize(FOLDER)?;
    let task: Task = serde_json::from_slice(&fs::read(folder.join(files::TASK))?)?;
    let path = fs::read_to_string(folder.join(files::SEARCH_PATH))?;
    if !path.is_empty() {
        holder::set_search_path(path);
    }
    let open = |name| OpenOptions::new().append(true).open(folder.join(name));
    let messages = Messages { words: RefCell::new(BufWriter::with_capacity(1 << 16, open(files::WORDS)?)) };
    let pulse = open(files::PULSE)?;
    let last = match set_up_system(&task).and_then(|()| act(task, &folder, &pulse, &messages)) {
        Ok(last) => last,
        Err(error) => Word::Failed(error),
    };
    messages.say(&last)?;
    messages.words.borrow_mut().flush()?;
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).map_err(io::Error::from)
}

fn set_up_system(task: &Task) -> Result<(), Error> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Error::new(
            "bad-guest",
            format!("inside the guest, {what}: {error}"),
            "build the kernel again: thalweg kernel build",
        )
    };
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|error| failed(&format!("{kind} cannot be mounted at {place}"), &error))?;
    }
    let seed = match task {
        Task::Probe => 0,
        Task::Run { experiment, .. } => experiment.seed,
    };
    sys::seed_kernel(&bytes_of(seed)).map_err(|error| failed("its random numbers cannot be seeded", &error))?;
    // The kernel's default limits depend on the guest's memory, and are too low for fast paths.
    sysctl::raise_tcp_memory().map_err(|error| failed("TCP's memory limits cannot be set", &error))
}

/// Repeats a seed as often as the kernel's seed requires; the kernel mixes the bytes.
fn bytes_of(seed: u64) -> [u8; sys::SEED_BYTES] {
    let mut bytes = [0; sys::SEED_BYTES];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&seed.to_le_bytes()));
    bytes
}

fn act(task: Task, folder: &Path, pulse: &File, messages: &Messages) -> Result<Word, Error> {
    let (experiment, id, traces, programs, mut order) = match task {
        Task::Probe => {
            return Ok(Word::Traits(Traits {
                release: probe::release(),
                algorithms: probe::usable_algorithms()?,
                qdiscs: probe::qdiscs()?,
            }));
        }
        Task::Run { experiment, id, traces, traits, programs, session } => {
            probe::believe(traits.algorithms, traits.qdiscs);
            (experiment, id, traces, programs, session)
        }
    };
    let broken = |error: io::Error| {
        let message = format!("the guest cannot read the path of its program or write its messages: {error}");
        Error::new("bad-guest", message, "check whether the disk is full: df -h")
    };
    // Must follow the mount of the guest's /proc: in the machine's /proc, this process appears as the kernel.
    let engine = std::env::current_exe().map_err(broken)?;
    if let Some(detached) = order.as_mut().and_then(|order| order.detached.as_mut()) {
        detached.output = files::OUTPUT.map(|output| folder.join(output));
    }
    let show = |event| {
        // A write that fails now also fails later, and that failure is reported.
        let _ = messages.say(&Word::Row(event));
    };
    // Writes a heartbeat while the command runs, like `is_cancelled` before.
    let must_end = || {
        let _ = (&*pulse).write(b".");
        false
    };
    let job = Job {
        experiment: &experiment,
        id: &id,
        traces: &traces,
        // Each call writes a heartbeat. The engine cancels by terminating the guest.
        is_cancelled: &|| {
            let _ = (&*pulse).write(b".");
            false
        },
        log: &|lines| {
            let _ = messages.say(&Word::Log(lines.to_owned()));
        },
        capture: None,
        programs: programs.as_deref(),
        session: order.as_deref().map(|order| Session { order, must_end: &must_end, show: &show }),
    };
    let setup = HostSetup { engine: &engine, is_virtual_time: true, guests: None };
    let mut failure = None;
    let mut take = |event: HostEvent| -> Result<(), HostEvent> {
        if let Err(error) = messages.say(&Word::Row(event)) {
            failure.get_or_insert(error);
        }
        Ok(())
    };
    let outcome = run::perform(&job, setup, &mut take);
    match (outcome, failure) {
        (_, Some(error)) => Err(broken(error)),
        (Ok(performance), None) => Ok(Word::Done(performance)),
        (Err(Failure::Failed(error)), None) => Err(error),
        (Err(Failure::Cancelled), None) => {
            Err(Error::new("bad-guest", "the guest stopped unexpectedly", "please report it"))
        }
    }
}
