//! The agent's state as clients see it, shared between threads.

use super::observable::{Observable, Tuning};
use super::snapshot::{self, Counters, Open, OpenConnections, Snapshot, Usage, Writer};
use super::sorting::Selection;
use crate::flow::cgroups;
use crate::flow::clock::{jiffy_ns, monotonic_us};
use crate::flow::measures::{address, cpu_limited, delivery_rate_bps, known, name, smallest_rtt_us};
use crate::flow::off_cpu::OffCpu;
use crate::flow::program::{Cost, Program};
use crate::flow::record_event::{RecordEvent, flag, state};
use crate::flow::scan::Scanner;
use crate::flow::wakeup::Wakeup;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Capacity of the channel between the scan and the selection, in connections.
const WAITING: usize = 256;

/// Maximum age of the previous sample for computing the current goodput.
const FRESH: Duration = Duration::from_secs(60);

const SHOWN_US: u64 = 60_000_000;

/// The state of the agent.
pub struct Observed {
    /// Fields that do not change while the agent runs.
    fixed: Snapshot,
    listen: OnceLock<String>,
    kernel: OnceLock<LoadedPrograms>,
    tuning: Option<Arc<dyn Tuning>>,
    wakeup: Wakeup,
    writer: Mutex<Writer>,
    close_rows: AtomicU64,
    interim_rows: AtomicU64,
    transfer_rows: AtomicU64,
    clock_steps: AtomicU64,
    reattached: AtomicU64,
    detached: Mutex<Option<String>>,
    reload_trouble: Mutex<Option<String>>,
    cgroups: Mutex<cgroups::Paths>,
    off_cpu: Arc<OffCpu>,
    samples: Mutex<Samples>,
}

/// Samples of the latest scan for a client.
#[derive(Default)]
struct Samples {
    at: Option<Instant>,
    /// Time and acknowledged bytes, by connection.
    of: HashMap<u64, (u64, u64)>,
}

/// The loaded programs.
pub struct LoadedPrograms {
    /// Handle of the programs.
    pub program: Arc<Program>,
    /// Iterates over connections.
    pub scanner: Scanner,
}

/// Returns the UNIX time in microseconds.
pub fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    /// Returns a state with all counters at zero.
    pub fn new(
        fixed: Snapshot,
        cgroups: cgroups::Paths,
        off_cpu: Arc<OffCpu>,
        wakeup: Wakeup,
        tuning: Option<Arc<dyn Tuning>>,
    ) -> Observed {
        Observed {
            fixed,
            listen: OnceLock::new(),
            kernel: OnceLock::new(),
            tuning,
            wakeup,
            writer: Mutex::default(),
            close_rows: AtomicU64::new(0),
            interim_rows: AtomicU64::new(0),
            transfer_rows: AtomicU64::new(0),
            clock_steps: AtomicU64::new(0),
            reattached: AtomicU64::new(0),
            detached: Mutex::default(),
            reload_trouble: Mutex::default(),
            cgroups: Mutex::new(cgroups),
            off_cpu,
            samples: Mutex::default(),
        }
    }

    /// Sets the address at which the metrics are served.
    pub fn listens(&self, address: SocketAddr) {
        let _ = self.listen.set(address.to_string());
    }

    /// Stores the loaded programs.
    pub fn started(&self, kernel: LoadedPrograms) -> &LoadedPrograms {
        self.kernel.get_or_init(|| kernel)
    }

    /// Counts a row.
    pub fn count_row(&self, kind: &str) {
        let counter = match kind {
            "close" => &self.close_rows,
            "interim" => &self.interim_rows,
            _ => &self.transfer_rows,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the reason why the program is not attached; returns whether it is a new reason.
    pub fn detached(&self, why: &str) -> bool {
        let mut detached = locked(&self.detached);
        let is_new = detached.as_deref() != Some(why);
        *detached = Some(why.to_owned());
        is_new
    }

    /// Counts that the program was attached again.
    pub fn attached_again(&self) {
        *locked(&self.detached) = None;
        self.reattached.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the result of a reload of the settings: `None`, or the reason why it failed.
    pub fn reloaded(&self, trouble: Option<String>) {
        *locked(&self.reload_trouble) = trouble;
    }

    /// Returns the wakeup of the daemon.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Updates the writer's state and the number of clock steps.
    pub fn update(&self, writer: Writer, clock_steps: u64) {
        *locked(&self.writer) = writer;
        self.clock_steps.store(clock_steps, Ordering::Relaxed);
        // Drops expired samples, unless the lock is held to answer a client.
        if let Ok(mut samples) = self.samples.try_lock() {
            if samples.at.is_some_and(|at| at.elapsed() > FRESH) {
                *samples = Samples::default();
            }
        }
    }

    /// Returns the state; rows are counted as of the last fetch of events.
    pub fn snapshot(&self) -> Snapshot {
        let kernel = self.kernel.get();
        let counted = kernel.map(|kernel| kernel.program.counters()).unwrap_or_default();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = Counters {
            opened: counted.opened,
            joined: counted.joined,
            closed: read(&self.close_rows) + counted.lost_closes,
            unsampled: counted.unsampled,
            close_rows: read(&self.close_rows),
            interim_rows: read(&self.interim_rows),
            transfer_rows: read(&self.transfer_rows),
            lost_events: counted.lost_events,
            lost_connections: counted.lost_connections,
            clock_steps: read(&self.clock_steps),
            reattached: read(&self.reattached),
        };
        let now = monotonic_us();
        let off_cpu = self.off_cpu.share(now.saturating_sub(SHOWN_US), now);
        let maps_bytes = kernel.and_then(|kernel| kernel.program.maps_bytes());
        Snapshot {
            now_us: now_us(),
            listen: self.listen.get().cloned(),
            connections_open: (counters.opened + counters.joined).saturating_sub(counters.closed),
            away_percent: off_cpu.map(|share| 100.0 * share),
            counters,
            not_attached: locked(&self.detached).clone(),
            reload_trouble: locked(&self.reload_trouble).clone(),
            writer: locked(&self.writer).clone(),
            usage: Usage { maps_bytes, ..Usage::of_this_process() },
            programs: kernel
                .map(|kernel| kernel.program.costs())
                .unwrap_or_default()
                .into_iter()
                .map(program)
                .collect(),
            ..self.fixed.clone()
        }
    }
}

impl Observable for Observed {
    /// Wakes the daemon first, so that the state includes connections that closed before the request.
    fn status(&self) -> Snapshot {
        self.wakeup.wake();
        self.snapshot()
    }

    fn tuning(&self) -> Option<Arc<dyn Tuning>> {
        // So that the tuner learns from connections that closed before the request.
        self.tuning.clone().inspect(|_| self.wakeup.wake())
    }

    fn open(&self, selection: &Selection) -> OpenConnections {
        let Some(kernel) = self.kernel.get() else { return OpenConnections::default() };
        let mut samples = locked(&self.samples);
        let mut cgroups = locked(&self.cgroups);
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let before = std::mem::take(&mut samples.of);
        let (connections, now) = thread::scope(|scope| {
            let cgroups = &mut *cgroups;
            let thread = thread::Builder::new().name("snapshot".to_owned()).spawn_scoped(scope, move || {
                let mut now = HashMap::new();
                // If this fails, the answer holds the connections that could be listed.
                let _ = kernel.scanner.scan(true, &mut |event| {
                    now.insert(event.connection, (event.end_us, event.acked_bytes));
                    let cgroup = cgroups.of(event.cgroup).map(|path| path.to_string());
                    let goodput_bps = before.get(&event.connection).and_then(|sample| goodput_bps(*sample, event));
                    let _ = sender.send(open(event, cgroup, goodput_bps, &self.off_cpu));
                });
                now
            });
            let picked = selection.pick(receiver.into_iter());
            // If the thread could not be started, the answer is empty.
            (picked, thread.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default())
        });
        let total = now.len() as u64;
        *samples = Samples { at: Some(Instant::now()), of: now };
        OpenConnections { looked_us: now_us(), total, connections }
    }
}

fn program(cost: Cost) -> snapshot::Program {
    snapshot::Program { name: cost.name, runs: cost.runs, run_ns: cost.run_ns }
}

/// Returns the goodput between two samples in bits per second; `None` if the samples are [`FRESH`] or more apart, or
/// less than two jiffies, because a burst would distort the rate.
fn goodput_bps((looked_us, acked_bytes): (u64, u64), event: &RecordEvent) -> Option<f64> {
    let fresh_us = FRESH.as_micros() as u64;
    let least_us = 2 * jiffy_ns() / 1_000;
    let passed_us = event.end_us.checked_sub(looked_us).filter(|us| (least_us..fresh_us).contains(us))?;
    Some(8e6 * event.acked_bytes.saturating_sub(acked_bytes) as f64 / passed_us as f64)
}

fn open(event: &RecordEvent, cgroup: Option<String>, goodput_bps: Option<f64>, off_cpu: &OffCpu) -> Open {
    let endpoint = |words, port: u32| {
        address(event.family, words)
            .map(|address| SocketAddr::new(address, port as u16).to_string())
            .unwrap_or_default()
    };
    Open {
        connection: event.connection,
        local: endpoint(event.local_address, event.local_port),
        remote: endpoint(event.remote_address, event.remote_port),
        cc: name(event.cc),
        state: state::NAMES.iter().find(|(number, _)| *number == event.state).map_or("", |(_, name)| name).to_owned(),
        netns: event.netns.into(),
        cgroup,
        age_us: (!event.is(flag::JOINED)).then(|| monotonic_us().saturating_sub(event.start_us)),
        acked_bytes: event.acked_bytes,
        received_bytes: event.received_bytes,
        goodput_bps,
        srtt_us: known(event.rtt_smoothed_us),
        min_rtt_us: smallest_rtt_us(event),
        cwnd_packets: event.cwnd_packets.into(),
        segments: event.segments.into(),
        retransmits: event.retransmits.into(),
        delivery_rate_bps: delivery_rate_bps(event),
        cpu_limited: cpu_limited(event, off_cpu),
    }
}
