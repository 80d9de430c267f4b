//! The daemon's part of choosing: the decision engine with its clock, learned state, log and queries.

use super::arms::Offer;
use super::decision_engine::DecisionEngine;
use super::kernel::TuneKernel;
use super::metrics;
use super::options::Options;
use super::setup::Setup;
use super::state::{Learned, State};
use super::view::{Saved, Status};
use crate::flow::reason::Reason;
use crate::log;
use crate::show::observable::Tuning;
use crate::show::observed::now_us;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thalweg_policy::{Outcome, Prefix, PrefixError};
use thalweg_store::Problem;
use thalweg_units::Time;

/// Interval of the search for new network namespaces, in which no algorithm is drawn before they are known.
const NAMESPACE_INTERVAL: Duration = Duration::from_secs(5);

/// Interval at which the defaults of other network namespaces are read, each of which must be entered.
const DEFAULTS_INTERVAL: Duration = Duration::from_secs(60);

/// Makes the decisions.
pub struct Chooser {
    shared: Arc<Shared>,
    options: Options,
    scanned: Instant,
    /// Time at which the defaults of other namespaces were last read.
    defaults_read: Instant,
}

/// State shared by the daemon's thread and client requests.
pub struct Shared {
    engine: Mutex<DecisionEngine>,
    /// The file of learned state; `None` before the start.
    state: Mutex<Option<State>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn namespaces() -> BTreeMap<u32, String> {
    // The kernel numbers namespaces with 32 bits.
    thalweg_netns::names().into_iter().map(|(number, name)| (number as u32, name)).collect()
}

/// Returns the default algorithm of this network namespace, and if `with_others`, those of the others that can be
/// entered.
fn defaults(with_others: bool) -> BTreeMap<u32, String> {
    let own = thalweg_netns::own().and_then(|number| Ok((number, thalweg_netns::default_cc(number)?)));
    let others = if with_others { thalweg_netns::other_defaults() } else { Vec::new() };
    let all = others.into_iter().chain(own);
    all.map(|(number, default)| (number as u32, default)).collect()
}

fn now() -> Time {
    Time(now_us().saturating_mul(1_000))
}

impl Chooser {
    /// Creates a chooser that has not started; `own` is the network namespace of this process.
    pub fn new(setup: Setup, own: u32, options: Options) -> Chooser {
        let engine =
            DecisionEngine::new(setup, own, Box::new(|netns: u32| thalweg_netns::default_cc(netns.into()).ok()));
        let shared = Shared { engine: Mutex::new(engine), state: Mutex::default() };
        let now = Instant::now();
        Chooser { shared: Arc::new(shared), options, scanned: now, defaults_read: now }
    }

    /// Restores the learned state, and writes the first rows and overrides.
    ///
    /// # Errors
    /// If the learned state cannot be opened or set aside, or the kernel rejects an override.
    pub fn begin(&mut self, kernel: &mut dyn TuneKernel) -> Result<(), Problem> {
        let mut engine = locked(&self.shared.engine);
        let (state, learned) = State::open(&engine.setup.state)?;
        restore(&mut engine, &state, learned)?;
        *locked(&self.shared.state) = Some(state);
        engine.scan_namespaces(namespaces(), now());
        engine.begin(now(), kernel)
    }

    /// Counts a closed connection about which the BPF program has decided.
    pub fn count(&mut self, netns: u32, peer: Option<IpAddr>, reason: Reason, cc: &Arc<str>) {
        locked(&self.shared.engine).count(netns, peer, reason, cc, now());
    }

    /// Learns from the outcome of a closed connection.
    pub fn observe(&mut self, netns: u32, outcome: &Outcome) {
        locked(&self.shared.engine).observe(netns, outcome, now());
    }

    /// Writes the rows that are due, the learned state and the log. `off_cpu` is the recent off-CPU share, from 0 to 1;
    /// `None` if unknown.
    pub fn tick(&mut self, off_cpu: Option<f64>, kernel: &mut dyn TuneKernel) {
        let lines = {
            let namespaces = (self.scanned.elapsed() >= NAMESPACE_INTERVAL).then(|| {
                self.scanned = Instant::now();
                let with_others = self.defaults_read.elapsed() >= DEFAULTS_INTERVAL;
                if with_others {
                    self.defaults_read = self.scanned;
                }
                (namespaces(), defaults(with_others))
            });
            let mut engine = locked(&self.shared.engine);
            if let Some((names, defaults)) = namespaces {
                engine.scan_namespaces(names, now());
                engine.follow_defaults(&defaults, now());
            }
            engine.tick(now(), off_cpu, kernel);
            if let Some(state) = locked(&self.shared.state).as_mut() {
                state.tick(&engine, now());
            }
            engine.log.take_lines()
        };
        lines.iter().for_each(|(level, line)| log::output(*level, line));
    }

    /// Returns lines of output that describe the settings.
    pub fn opening_lines(&self) -> Vec<String> {
        locked(&self.shared.engine).setup.lines()
    }

    /// Reloads the settings and applies those that can change at run time. Returns lines for the log.
    ///
    /// # Errors
    /// If the settings are invalid, or the kernel rejects an override. The earlier settings then stay in effect, except
    /// overrides that were already replaced.
    pub fn reload(&mut self, kernel: &mut dyn TuneKernel) -> Result<Vec<String>, Problem> {
        let mut engine = locked(&self.shared.engine);
        let (setup, stay) = engine.setup.again(&self.options, &Offer::read()?)?;
        let mut lines = setup.lines();
        if let Some(differs) = engine.change(setup, now(), kernel)? {
            lines.push(format!("the learned state was created with other settings ({differs}): learning starts over"));
        }
        if !stay.is_empty() {
            log::warning(&format!("these settings change only after a restart: {}", stay.join(", ")));
        }
        Ok(lines)
    }

    /// Writes the learned state for the last time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&mut self) -> Result<(), Problem> {
        let engine = locked(&self.shared.engine);
        locked(&self.shared.state).as_mut().map_or(Ok(()), |state| state.finish(&engine))
    }

    /// Returns the object that answers requests of clients.
    pub fn tuning(&self) -> Arc<dyn Tuning> {
        Arc::clone(&self.shared) as Arc<dyn Tuning>
    }
}

/// Restores the learned state as far as it still applies.
fn restore(engine: &mut DecisionEngine, state: &State, learned: Learned) -> Result<(), Problem> {
    let mut lost: Option<&str> = None;
    for (netns, guard) in learned {
        if let Err(differs) = engine.restore_from(netns.unwrap_or(engine.own), guard, now()) {
            // A namespace other than the agent's own may no longer exist, so its state may be lost.
            lost = lost.or(netns.is_none().then_some(differs));
        }
    }
    if let Some(differs) = lost {
        let aside = state.set_aside(now())?;
        let aside = aside.display();
        log::warning(&format!(
            "the learned state was created with other settings ({differs}): it is kept in {aside}, and learning starts \
             over"
        ));
    }
    Ok(())
}

impl Shared {
    fn engine_with_names(&self) -> MutexGuard<'_, DecisionEngine> {
        let namespaces = namespaces();
        let mut engine = locked(&self.engine);
        engine.scan_namespaces(namespaces, now());
        engine
    }

    fn current(&self, limit: usize) -> Status {
        let mut status = self.engine_with_names().status(limit, now());
        if let Some(state) = locked(&self.state).as_ref() {
            status.state = Saved {
                path: state.path().display().to_string(),
                saved_us: state.last().as_ref().ok().copied().flatten(),
                trouble: state.last().as_ref().err().cloned(),
            };
        }
        status
    }
}

impl Tuning for Shared {
    fn status(&self, limit: usize) -> Value {
        serde_json::to_value(self.current(limit)).unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    fn explain(&self, prefix: &str) -> Value {
        match prefix_of(prefix) {
            Ok(prefix) => serde_json::to_value(self.engine_with_names().explain(prefix, now())).unwrap_or_default(),
            Err(error) => json!({ "error": error }),
        }
    }

    fn metrics(&self) -> Vec<prometheus::proto::MetricFamily> {
        let engine = locked(&self.engine);
        let is_failing = locked(&self.state).as_ref().is_some_and(|state| state.last().is_err());
        metrics::families(&engine, is_failing)
    }
}

/// Parses a prefix, or an address as a prefix.
///
/// # Errors
/// If the text is neither.
pub fn prefix_of(text: &str) -> Result<Prefix, String> {
    match text.parse::<IpAddr>() {
        Ok(address) => Ok(Prefix::of(address, u8::MAX)),
        Err(_) => text.parse().map_err(|error: PrefixError| format!("`{text}`: {}", error.why)),
    }
}
