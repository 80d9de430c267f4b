//! `record`: starts, runs and ends recording.
//!
//! ```text
//!  kernel: program ─► shared memory ─┐ several times a second
//!          iterator ─────────────────┴► events ─► rows ─► files, metrics
//! ```
//!
//! Nothing is pinned: the kernel unloads the programs when this process exits, unless a watchdog of `tune` keeps them
//! for its grace time.

use super::attachment::Attachment;
use super::detail::Detail;
use super::extension::{Extension, RecordOnly};
use super::files::{Addresses, Writer};
use super::options::Options;
use super::prepared::{Prepared, addresses, program_settings, writer_settings};
use super::recorder::Recorder;
use super::rounds::Rounds;
use super::row::RowBuilder;
use crate::flow::cgroups::Recorded;
use crate::flow::clock::{Clock, jiffy_ns};
use crate::flow::event_queue::EventQueue;
use crate::flow::off_cpu::{OffCpu, Watch};
use crate::flow::program::Program;
use crate::flow::scan::{Scanned, Scanner};
use crate::flow::untracked::Untracked;
use crate::flow::wakeup::Wakeup;
use crate::log;
use crate::notify;
use crate::show::metrics::Metrics;
use crate::show::observable::Observable;
use crate::show::observed::{LoadedPrograms, Observed};
use crate::show::snapshot::Snapshot;
use crate::show::tally::Tally;
use crate::show::{http, socket};
use crate::signals::Signals;
use libbpf_rs::MapHandle;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use thalweg_store::Problem;

/// Records until SIGINT or SIGTERM arrives.
///
/// # Errors
/// If recording cannot start, the kernel's events cannot be read, or rows could not be written at the end.
pub fn record(options: &Options, signals: &Signals) -> Result<(), Problem> {
    record_with(options, true, Box::new(RecordOnly), signals)
}

/// Records with an extension; rows are written only if requested.
///
/// # Errors
/// Those of [`record`] and of the extension.
pub fn record_with(
    options: &Options,
    writes_rows: bool,
    extension: Box<dyn Extension>,
    signals: &Signals,
) -> Result<(), Problem> {
    let prepared = Prepared::new(options, extension.sets_algorithms())?;
    let opened = Opened::new(options, &prepared, writes_rows, &*extension)?;
    let Loaded { kernel, events, waker } = Loaded::new(options, &prepared.cgroup, &*extension)?;
    let observed = Arc::clone(&opened.observed);
    let kernel = observed.started(kernel);
    let word = extension.opening_word();
    let (recorder, _servers) = opened.recorder(options, &prepared, extension);
    let recorder = RefCell::new(recorder);

    recorder.borrow_mut().extension.loaded(&kernel.program)?;
    let Prepared { mount, cgroup, paths, addresses } = prepared;
    let mut attachment =
        Attachment::new(kernel, &observed, mount, paths, cgroup, &mut *recorder.borrow_mut().extension)?;
    let rounds = Rounds::new(&recorder, events, &waker, &kernel.scanner, observed.wakeup(), attachment.changes())?;
    report(rounds.scan()?);
    log::info(&opening_words(word, writes_rows, options, &observed.snapshot()));
    announce(&mut *recorder.borrow_mut().extension);

    let reload = Reload { options, observed: &observed, addresses: RefCell::new(addresses) };
    rounds.run(options.interim, options.flush, &mut attachment, signals, &|recorder| reload.reload(recorder))?;
    let ended = detach(rounds, attachment, &recorder)?;
    close(recorder.into_inner(), &observed, ended)
}

/// Shared state, and resources that another process may hold: acquired before programs are loaded into the kernel.
struct Opened {
    observed: Arc<Observed>,
    metrics: Arc<Metrics>,
    off_cpu: Arc<OffCpu>,
    writer: Option<Writer>,
    servers: Servers,
}

/// Handles of threads that run until they are dropped.
struct Servers {
    _socket: socket::Server,
    _watch: Watch,
}

impl Opened {
    fn new(
        options: &Options,
        prepared: &Prepared,
        writes_rows: bool,
        extension: &dyn Extension,
    ) -> Result<Opened, Problem> {
        let off_cpu = Arc::new(OffCpu::default());
        let wakeup = Wakeup::new().map_err(|error| {
            Problem::failed("files", "this process", error, "permission to open another file", "check ulimit -n")
        })?;
        let (facts, paths) = (prepared.facts(options), prepared.paths.clone());
        let observed = Arc::new(Observed::new(facts, paths, Arc::clone(&off_cpu), wakeup, extension.tuning()));
        let metrics = Arc::new(Metrics::new());
        let writer = if writes_rows { Some(Writer::open(writer_settings(options))?) } else { None };
        let socket = socket::Server::start(&options.socket, Arc::clone(&observed) as Arc<dyn Observable>)?;
        if !options.no_metrics {
            let shown = Arc::clone(&observed) as Arc<dyn Observable>;
            observed.listens(http::Server::start(&options.listen, Arc::clone(&metrics), shown)?.address());
        }
        let watch = Watch::start(&off_cpu).map_err(|error| {
            Problem::failed("threads", "this process", error, "permission to start another thread", "check ulimit -u")
        })?;
        Ok(Opened { observed, metrics, off_cpu, writer, servers: Servers { _socket: socket, _watch: watch } })
    }

    fn recorder(self, options: &Options, prepared: &Prepared, extension: Box<dyn Extension>) -> (Recorder, Servers) {
        let row_builder = RowBuilder::new(
            prepared.addresses.clone(),
            options.sample,
            jiffy_ns(),
            prepared.paths.clone(),
            Arc::clone(&self.off_cpu),
            &extension.arms(),
        );
        let recorder = Recorder {
            row_builder,
            detail: options.detail(),
            clock: Clock::now(),
            writer: self.writer,
            tally: Tally::new(self.metrics),
            observed: self.observed,
            untracked: Untracked::default(),
            extension,
            off_cpu: self.off_cpu,
        };
        (recorder, self.servers)
    }
}

/// The loaded programs, and the maps that they share with this process.
struct Loaded {
    kernel: LoadedPrograms,
    events: EventQueue,
    waker: MapHandle,
}

impl Loaded {
    fn new(options: &Options, cgroup: &Recorded, extension: &dyn Extension) -> Result<Loaded, Problem> {
        let capacity = options.capacity();
        let settings = program_settings(options, cgroup, jiffy_ns(), capacity);
        let program = Arc::new(Program::load(&settings, capacity, &extension.load_config())?);
        let scanner = Scanner::new(Arc::clone(&program), cgroup.number)?;
        let events = EventQueue::of(program.map("events")?, program.map("progress")?).map_err(|error| {
            Problem::failed(
                "no-memory",
                "this process",
                error,
                "memory that is shared with the BPF programs",
                "check ulimit -v",
            )
        })?;
        let waker = program.map("waker")?;
        Ok(Loaded { kernel: LoadedPrograms { program, scanner }, events, waker })
    }
}

fn announce(extension: &mut dyn Extension) {
    extension.opening_lines().iter().for_each(|line| log::info(line));
    extension.opened();
    notify::ready();
}

/// Ends recording. The inner result is that of the extension.
fn detach(
    rounds: Rounds<'_>,
    attachment: Attachment<'_>,
    recorder: &RefCell<Recorder>,
) -> Result<Result<(), Problem>, Problem> {
    if recorder.borrow().detail == Detail::Full
        && let Err(error) = rounds.scan_last()?
    {
        log::warning(&format!("the last rows of open connections were not written: {error}"));
    }
    let ended = recorder.borrow_mut().extension.end();
    drop(attachment);
    rounds.fetch()?;
    Ok(ended)
}

fn close(recorder: Recorder, observed: &Observed, ended: Result<(), Problem>) -> Result<(), Problem> {
    let written = recorder.writer.map_or(Ok(()), Writer::finish);
    if let (Err(_), Err(problem)) = (&written, &ended) {
        log::error(&problem.to_string());
    }
    written?;
    let counters = observed.snapshot().counters;
    let rows = counters.close_rows + counters.transfer_rows + counters.interim_rows;
    log::info(&format!("recording has ended: {} connections closed, {rows} rows", counters.closed));
    ended
}

/// Handles SIGHUP.
struct Reload<'a> {
    options: &'a Options,
    observed: &'a Observed,
    addresses: RefCell<Addresses>,
}

impl Reload<'_> {
    fn reload(&self, recorder: &mut Recorder) {
        log::info("SIGHUP: reloading the settings and writing queued rows");
        recorder.flush(Instant::now());
        let result = self.try_to_reload(recorder);
        if let Err(problem) = &result {
            log::error(&format!("the settings could not be reloaded; the earlier ones remain in use: {problem}"));
        }
        self.observed.reloaded(result.err().map(|problem| format!("{}: {}", problem.place, problem.found)));
    }

    /// Reloads the settings. If that fails, the earlier ones remain, except for some overrides of `tune` if the kernel
    /// rejected another one.
    fn try_to_reload(&self, recorder: &mut Recorder) -> Result<(), Problem> {
        let addresses = addresses(self.options)?;
        let lines = recorder.extension.reload()?;
        lines.iter().for_each(|line| log::info(line));
        if addresses != *self.addresses.borrow() {
            log::warning("--key: the key has changed; addresses hash to different numbers from now on");
            recorder.row_builder.set_addresses(addresses.clone());
            self.addresses.replace(addresses);
        }
        Ok(())
    }
}

fn opening_words(word: &str, writes_rows: bool, options: &Options, status: &Snapshot) -> String {
    let which = match &options.cgroup {
        Some(_) => format!("connections of cgroup {}", status.cgroup),
        None => "the connections of this machine".to_owned(),
    };
    let sampled = if options.sample > 1 { format!(", one in {}", options.sample) } else { String::new() };
    let detail = match options.detail() {
        Detail::Full => "",
        Detail::Low => ", detail low",
    };
    let metrics =
        status.listen.as_ref().map(|listen| format!("; metrics: http://{listen}/metrics")).unwrap_or_default();
    let joined = status.counters.joined;
    let place = if writes_rows { format!("in {}", status.out) } else { "without records".to_owned() };
    format!("{word} {which}{sampled}{detail}, {place}; {joined} were already open{metrics}")
}

/// Logs which connections the first scan missed.
fn report(outcome: io::Result<Scanned>) {
    match outcome {
        Ok(Scanned { missed: 0, hidden: 0, .. }) => {}
        Ok(Scanned { missed: 0, hidden, .. }) => log::warning(&format!(
            "the network namespace of {hidden} process(es) cannot be read: connections that were open there before now \
             may not be recorded (this requires CAP_SYS_PTRACE)"
        )),
        Ok(Scanned { missed, .. }) => log::warning(&format!(
            "{missed} network namespaces cannot be entered: connections that were open there before now are not \
             recorded (this requires CAP_SYS_ADMIN and CAP_SYS_PTRACE)"
        )),
        Err(error) => log::warning(&format!("connections that were open before now are not recorded: {error}")),
    }
}
