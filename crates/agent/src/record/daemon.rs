//! `record`: from start to end.
//!
//! ```text
//!  kernel: program ─► shared memory ─┐ several times a second
//!          iterator ─────────────────┴► events ─► rows ─► files, metrics
//! ```
//!
//! What can be refused is refused before anything is attached. The kernel takes the programs back when this process ends in
//! whatever way: nothing is pinned.

use super::attachment::Attachment;
use super::companion::Companion;
use super::files::{self, Addresses, Key, Writer};
use super::options::{Options, Privacy};
use super::recorder::Recorder;
use super::rounds::Rounds;
use super::row::Assembler;
use crate::flow::capacity::Room;
use crate::flow::cgroups::{Paths, Recorded, mount_point};
use crate::flow::clock::{Clock, jiffy_ns};
use crate::flow::event::Settings;
use crate::flow::event_queue::Events;
use crate::flow::off_cpu::{Away, Watch};
use crate::flow::program::{Program, check_alone, check_no_other_tuner};
use crate::flow::scan::{Walked, Walker};
use crate::flow::untracked::Unseen;
use crate::flow::wakeup::Bell;
use crate::log;
use crate::notify;
use crate::problem::Problem;
use crate::requirements::{self, BPF, FILES_OF_RECORDER, NET_ADMIN, PERFMON, SYS_ADMIN};
use crate::show::http;
use crate::show::metrics::Metrics;
use crate::show::observable::Observable;
use crate::show::observed::{Kernel, Observed, now_us};
use crate::show::snapshot::Snapshot;
use crate::show::socket;
use crate::show::tally::Tally;
use crate::signals::Signals;
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rights that recording takes, one of each. The kernel takes the last of each for the others.
pub const RIGHTS: &[&[requirements::Right]] = &[&[NET_ADMIN, SYS_ADMIN], &[BPF, SYS_ADMIN], &[PERFMON, SYS_ADMIN]];

/// Records until a signal ends it.
///
/// # Errors
/// If the machine lacks something, an option cannot be, somebody else records already, or rows could not be written in the end.
pub fn record(options: &Options, signals: &Signals) -> Result<(), Problem> {
    record_with(options, true, None, signals)
}

/// The same, with somebody who works along, and with rows written or not.
///
/// # Errors
/// As [`record`], and whatever stops the companion.
pub fn record_with(
    options: &Options,
    writes_rows: bool,
    companion: Option<Box<dyn Companion>>,
    signals: &Signals,
) -> Result<(), Problem> {
    let sets = companion.as_ref().is_some_and(|companion| companion.sets());
    let prepared = Prepared::new(options, sets)?;
    let away = Arc::new(Away::default());
    let bell = Bell::new()
        .map_err(|error| Problem::failed("files", "this process", error, "another open file", "look at ulimit -n"))?;
    let tuning = companion.as_ref().and_then(|companion| companion.tuning());
    let (facts, paths) = (prepared.facts(options), prepared.paths.clone());
    let observed = Arc::new(Observed::new(facts, paths.clone(), Arc::clone(&away), bell, tuning));
    let metrics = Arc::new(Metrics::new());
    // Everything that others may refuse comes before the kernel is asked to call.
    let writer = if writes_rows { Some(Writer::open(writer_settings(options))?) } else { None };
    let _socket = socket::Server::start(&options.socket, Arc::clone(&observed) as Arc<dyn Observable>)?;
    if !options.no_metrics {
        let shown = Arc::clone(&observed) as Arc<dyn Observable>;
        observed.listens(http::Server::start(&options.listen, Arc::clone(&metrics), shown)?.address());
    }
    let _watch = Watch::start(&away).map_err(|error| {
        Problem::failed("threads", "this process", error, "to be allowed another thread", "look at ulimit -u")
    })?;
    let jiffy_ns = jiffy_ns();
    let room = options.room();
    let config = companion.as_ref().map(|companion| companion.load_config()).unwrap_or_default();
    let arms = companion.as_ref().map(|companion| companion.names()).unwrap_or_default();
    let word = companion.as_ref().map_or("recording", |companion| companion.opening_word());
    let program = Arc::new(Program::load(&settings(options, &prepared.cgroup, jiffy_ns, room), room, &config)?);
    let walker = Walker::new(Arc::clone(&program), prepared.cgroup.number)?;
    let events = Events::of(program.map("events")?, program.map("progress")?).map_err(|error| {
        Problem::failed(
            "no-memory",
            "this process",
            error,
            "memory that it shares with the kernel's side",
            "look at ulimit -v",
        )
    })?;
    let waker = program.map("waker")?;
    let kernel = observed.started(Kernel { program, walker });

    let recorder = RefCell::new(Recorder {
        assembler: Assembler::new(
            prepared.addresses.clone(),
            options.sample,
            jiffy_ns,
            prepared.paths,
            Arc::clone(&away),
            arms,
        ),
        clock: Clock::now(),
        writer,
        tally: Tally::new(metrics),
        observed: Arc::clone(&observed),
        unseen: Unseen::default(),
        companion,
        away,
    });
    if let Some(companion) = &mut recorder.borrow_mut().companion {
        companion.loaded(&kernel.program)?;
    }
    let mut attachment = Attachment::new(
        kernel,
        &observed,
        prepared.mount,
        paths,
        prepared.cgroup,
        &mut recorder.borrow_mut().companion,
    )?;
    let rounds = Rounds::new(&recorder, events, &waker, &kernel.walker, observed.bell(), attachment.changes())?;
    report(rounds.walk()?);
    log::info(&opening_words(word, writes_rows, options, &observed.snapshot()));
    if let Some(companion) = &mut recorder.borrow_mut().companion {
        companion.opening_lines().iter().for_each(|line| log::info(line));
        companion.opened();
    }
    notify::ready();
    let reload = Reload { options, observed: &observed, addresses: RefCell::new(prepared.addresses) };
    rounds.run(options.interim, options.flush, &mut attachment, signals, &|recorder| reload.reload(recorder))?;

    if let Err(error) = rounds.walk_last()? {
        log::warning(&format!("connections that are open have no last row: {error}"));
    }
    let ended = recorder.borrow_mut().companion.as_mut().map_or(Ok(()), |companion| companion.end());
    drop(attachment);
    rounds.fetch()?;
    drop(rounds);
    let written = recorder.into_inner().writer.map_or(Ok(()), Writer::finish);
    if let (Err(_), Err(problem)) = (&written, &ended) {
        log::error(&problem.to_string());
    }
    written?;
    let counters = observed.snapshot().counters;
    let rows = counters.close_rows + counters.transfer_rows + counters.interim_rows;
    log::info(&format!("recording has ended: {} connections closed, {rows} rows", counters.closed));
    ended
}

/// What SIGHUP does.
struct Reload<'a> {
    options: &'a Options,
    observed: &'a Observed,
    addresses: RefCell<Addresses>,
}

impl Reload<'_> {
    fn reload(&self, recorder: &mut Recorder) {
        log::info("SIGHUP: settings are read again, and rows that wait are written");
        recorder.flush(Instant::now());
        let result = self.try_to_reload(recorder);
        if let Err(problem) = &result {
            log::error(&format!("the settings could not be read again, and the earlier ones stay: {problem}"));
        }
        self.observed.reloaded(result.err().map(|problem| format!("{}: {}", problem.place, problem.found)));
    }

    /// All of it, or nothing.
    fn try_to_reload(&self, recorder: &mut Recorder) -> Result<(), Problem> {
        let addresses = addresses(self.options)?;
        let lines = recorder.companion.as_mut().map_or(Ok(Vec::new()), |companion| companion.reload())?;
        lines.iter().for_each(|line| log::info(line));
        if addresses != *self.addresses.borrow() {
            log::warning("--key: another key; addresses hash to other numbers from now on");
            recorder.assembler.set_addresses(addresses.clone());
            self.addresses.replace(addresses);
        }
        Ok(())
    }
}

/// What the options and the machine say before anything is touched.
struct Prepared {
    mount: PathBuf,
    cgroup: Recorded,
    paths: Paths,
    addresses: Addresses,
}

impl Prepared {
    /// Of one that `sets` algorithms as well, or does not.
    fn new(options: &Options, sets: bool) -> Result<Prepared, Problem> {
        requirements::check_files(FILES_OF_RECORDER)?;
        requirements::check_version()?;
        requirements::check_rights(RIGHTS)?;
        requirements::read_btf()?;
        let mount = mount_point()?;
        let cgroup = Recorded::find(&mount, options.cgroup.as_deref())?;
        let mut paths = Paths::new(mount.clone());
        let mut path_of = |number| paths.of(number).map(|path| path.to_string());
        check_alone(&cgroup, &mut path_of)?;
        if sets {
            check_no_other_tuner(&cgroup, &mut path_of)?;
        }
        Ok(Prepared { mount, cgroup, paths, addresses: addresses(options)? })
    }

    /// What `status` shows that does not change.
    fn facts(&self, options: &Options) -> Snapshot {
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            since_us: now_us(),
            cgroup: self.cgroup.path.display().to_string(),
            sampled_one_in: options.sample,
            addresses: options.addresses.name().to_owned(),
            out: options.out.display().to_string(),
            ..Snapshot::default()
        }
    }
}

/// What is kept of addresses.
fn addresses(options: &Options) -> Result<Addresses, Problem> {
    Ok(match options.addresses {
        Privacy::Whole => Addresses::Whole,
        Privacy::Truncated => Addresses::Truncated,
        Privacy::Hashed => Addresses::Hashed(Key::open(&options.key)?),
    })
}

fn writer_settings(options: &Options) -> files::Settings {
    files::Settings {
        folder: options.out.clone(),
        flush: options.flush,
        rotate: options.rotate,
        rotate_bytes: options.rotate_size.0,
        max_bytes: options.max_size.0,
    }
}

fn settings(options: &Options, cgroup: &Recorded, jiffy_ns: u64, room: Room) -> Settings {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Settings {
        jiffy_us: jiffy_ns / 1_000,
        idle_gap_us: us(options.idle_gap),
        sample_one_in: options.sample,
        interim_us: us(options.interim),
        cgroup_level: cgroup.level,
        set_mask: room.set_mask(),
    }
}

fn opening_words(word: &str, writes_rows: bool, options: &Options, status: &Snapshot) -> String {
    let which = match &options.cgroup {
        Some(_) => format!("connections of cgroup {}", status.cgroup),
        None => "the connections of this machine".to_owned(),
    };
    let sampled = if options.sample > 1 { format!(", one in {}", options.sample) } else { String::new() };
    let metrics =
        status.listen.as_ref().map(|listen| format!("; metrics: http://{listen}/metrics")).unwrap_or_default();
    let joined = status.counters.joined;
    let place = if writes_rows { format!("in {}", status.out) } else { "without records".to_owned() };
    format!("{word} {which}{sampled}, {place}; {joined} were open already{metrics}")
}

/// The first walk says what will be missing.
fn report(outcome: io::Result<Walked>) {
    match outcome {
        Ok(Walked { missed: 0, .. }) => {}
        Ok(Walked { missed, .. }) => log::warning(&format!(
            "{missed} network namespaces cannot be entered: connections that were open there before now are not recorded \
             (it takes CAP_SYS_ADMIN and CAP_SYS_PTRACE)"
        )),
        Err(error) => log::warning(&format!("connections that were open before now are not recorded: {error}")),
    }
}
