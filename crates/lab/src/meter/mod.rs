//! The meter: measures each TCP or UDP flow on the path from its packets alone.
//!
//! ```text
//!  host ── interface ══════ path ══════ interface ── host
//!             │ tap: packets enter         │ tap: packets leave
//!             └────────────► ledger ◄──────┘   by 5-tuple: bytes, retransmissions, losses, one-way delays, samples
//! ```
//!
//! A tap is an AF_PACKET socket on a host's interface. Packets that the host sends enter the path there, after the
//! host's own queue discipline; packets that arrive have left the path. A packet is identified at the other end by a
//! hash of header fields and the first bytes of its payload; one that entered and does not leave is a loss on the path.
//! The meter needs no support by the sending programs.
//!
//! ```no_run
//! # use thalweg_lab::clock::Clock;
//! # use thalweg_lab::meter::{Meter, Settings, TapPoint};
//! # use thalweg_units::Span;
//! # fn main() -> Result<(), thalweg_lab::Error> {
//! let point = |host: &str| TapPoint {
//!     namespace: Some(format!("/run/netns/{host}").into()),
//!     interface: "eth0".into(),
//! };
//! let settings = Settings { clock: Clock::starting_now(), interval: Span::ZERO, only: None, until: None };
//! let meter = Meter::start(&[point("sender"), point("receiver")], settings)?;
//! for row in meter.rows() {
//!     println!("{:?} {} bytes, {} lost", row.key, row.delivered_bytes, row.lost_packets);
//! }
//! let report = meter.stop();
//! # Ok(())
//! # }
//! ```

mod ledger;
mod packet;
mod role;
mod stream;
mod tap;

pub use ledger::{FlowCount, FlowSample};
pub use packet::{FlowKey, Protocol};
pub(crate) use role::play;
pub use tap::TapPoint;

use crate::clock::{Clock, monotonic_ns};
use crate::error::Error;
use crate::stamps::Stamps;
use ledger::Ledger;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tap::Tap;
use thalweg_units::{Span, Time};

/// Interval between two scans of the rings, which must not fill up meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// Minimum age of packets that a running meter reads from the rings, so that the entry of a packet is read before its
/// exit.
const SETTLING_NS: u64 = 1_000_000;

/// Settings of a meter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Clock of the experiment; packets from before its start are ignored.
    pub clock: Clock,
    /// Sampling interval; zero disables samples.
    pub interval: Span,
    /// Addresses whose flows are measured; `None` for all flows.
    pub only: Option<Vec<SocketAddr>>,
    /// Time after which packets are ignored; `None` to measure until the meter stops.
    pub until: Option<Time>,
}

/// The tapped interfaces.
#[derive(Debug)]
pub struct Taps(Vec<Tap>);

impl Taps {
    /// Opens a tap at each of these points.
    ///
    /// # Errors
    /// `no-packet-socket`: an interface cannot be tapped.
    pub fn open(points: &[TapPoint]) -> Result<Taps, Error> {
        points.iter().map(Tap::open).collect::<Result<_, _>>().map(Taps)
    }
}

/// Results of a meter.
#[derive(Clone, Debug)]
pub struct Report {
    /// Counters of the flows, one entry per direction, in order of appearance.
    pub flows: Vec<FlowCount>,
    /// Samples, in order of time.
    pub samples: Vec<FlowSample>,
    /// Packets that the meter missed because a ring was full. If there are any, losses and bytes are wrong.
    pub missed_packets: u64,
}

/// A running meter; dropping it stops it.
#[derive(Debug)]
pub struct Meter {
    state: Arc<State>,
    worker: Option<JoinHandle<u64>>,
}

#[derive(Debug)]
struct State {
    ledger: Mutex<Ledger>,
    is_stopping: AtomicBool,
}

impl Meter {
    /// Starts to measure the packets of these interfaces.
    ///
    /// # Errors
    /// `no-packet-socket`: an interface cannot be tapped. `no-resources`: the system refuses to create a thread.
    pub fn start(points: &[TapPoint], settings: Settings) -> Result<Meter, Error> {
        Meter::read(Taps::open(points)?, settings)
    }

    /// Starts to measure with open taps.
    ///
    /// # Errors
    /// `no-resources`: the system refuses to create a thread.
    pub fn read(Taps(taps): Taps, settings: Settings) -> Result<Meter, Error> {
        let ledger = Mutex::new(Ledger::new(settings.interval));
        let state = Arc::new(State { ledger, is_stopping: AtomicBool::new(false) });
        let reader = Reader { taps, settings, state: Arc::clone(&state), stamps: Stamps::measure() };
        let worker = thread::Builder::new().name("meter".to_owned()).spawn(|| reader.run()).map_err(|error| {
            let message = format!("the meter cannot start a thread: {error}");
            Error::new("no-resources", message, "close other programs, or raise ulimit -u")
        })?;
        Ok(Meter { state, worker: Some(worker) })
    }

    /// Returns the counters as of the latest scan of the rings.
    pub fn rows(&self) -> Vec<FlowCount> {
        self.state.ledger.lock().unwrap_or_else(PoisonError::into_inner).counts()
    }

    /// Reads the remaining packets, and returns the results.
    pub fn stop(mut self) -> Report {
        let missed_packets = self.join();
        let mut ledger = self.state.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Report { flows: ledger.counts(), samples: ledger.take_samples(), missed_packets }
    }

    fn join(&mut self) -> u64 {
        self.state.is_stopping.store(true, Ordering::Release);
        self.worker.take().map_or(0, |worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.join();
        }
    }
}

struct Reader {
    taps: Vec<Tap>,
    settings: Settings,
    state: Arc<State>,
    stamps: Stamps,
}

impl Reader {
    /// Reads packets until the meter stops; returns the number of packets that were dropped because a ring was full.
    fn run(mut self) -> u64 {
        loop {
            let is_stopping = self.state.is_stopping.load(Ordering::Acquire);
            let now_ns = monotonic_ns();
            self.stamps.refresh(now_ns);
            let state = Arc::clone(&self.state);
            let mut ledger = state.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            let until_ns = if is_stopping { now_ns } else { now_ns.saturating_sub(SETTLING_NS) };
            self.read_until(until_ns, &mut ledger);
            ledger.advance(self.settings.clock.at(until_ns));
            drop(ledger);
            if is_stopping {
                return self.taps.iter().map(Tap::dropped).sum();
            }
            thread::sleep(PAUSE);
        }
    }

    /// Records the packets of the rings in the order of their timestamps.
    fn read_until(&mut self, until_ns: u64, ledger: &mut Ledger) {
        loop {
            let heads = self.taps.iter().enumerate().filter_map(|(index, tap)| {
                let frame = tap.front()?;
                // At the same timestamp, packets that enter come before packets that leave.
                Some((self.stamps.monotonic_ns(frame.realtime_ns), !frame.is_outgoing, index))
            });
            let Some((at_ns, is_leaving, index)) = heads.min().filter(|(at_ns, ..)| *at_ns <= until_ns) else { return };
            self.record(at_ns, is_leaving, index, ledger);
            self.taps[index].pop();
        }
    }

    fn record(&self, at_ns: u64, is_leaving: bool, index: usize, ledger: &mut Ledger) {
        let Settings { clock, only, until, .. } = &self.settings;
        if at_ns < clock.monotonic_ns(Time::ZERO) || until.is_some_and(|until| clock.at(at_ns) > until) {
            return;
        }
        let segment = self.taps[index].front().and_then(|frame| packet::read(frame.ip, frame.segment_bytes));
        let is_wanted =
            |key: &FlowKey| only.as_ref().is_none_or(|only| only.contains(&key.from) || only.contains(&key.to));
        match segment.filter(|segment| is_wanted(&segment.key)) {
            Some(segment) if is_leaving => ledger.leave(clock.at(at_ns), &segment),
            Some(segment) => ledger.enter(clock.at(at_ns), &segment),
            None => {}
        }
    }
}
