//! Restricts the CPU time of a guest's processor.
//!
//! There are two ways, as in Elmenhorst and Aschenbruck, "2BRobust" (2026):
//!
//! - **A share** (`cpu_share`): its thread runs under SCHED_DEADLINE with a runtime and a deadline of one slice, so
//!   that slices are not split, and a period of slice / share ([`deadline`]).
//! - **Co-tenants** (`co_tenants`): its thread and this number of busy processes are pinned to one processor, which the
//!   system's ordinary scheduler divides among them ([`tenants`]).

mod deadline;
mod sys;
mod tenants;
pub(super) mod threads;

use crate::error::Error;
use deadline::Slices;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tenants::CoTenants;
use thalweg_plan::plan::{Cpu, Host};
use thalweg_units::Span;
use threads::{running_ns, tie, untie};

/// Number of guests that were assigned a shared processor, which they take in turn.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Runtimes for the relay: the first one that fits beside the guests' shares is used.
const RELAY_RUNTIMES: [Span; 3] = [Span::from_micros(800), Span::from_micros(600), Span::from_micros(400)];
const RELAY_PERIOD: Span = Span::from_millis(1);

/// Restrictions of a guest's processors. Dropping this ends the CPU share and the co-tenants.
#[derive(Debug)]
pub struct Contention {
    processors: Vec<u32>,
    share: Option<f64>,
    slices: Option<Slices>,
    tenants: Option<CoTenants>,
    commands: Vec<String>,
    began: Instant,
    had_ns: Option<u64>,
}

/// Checks in advance that [`apply`] is possible.
///
/// # Errors
/// `no-contention`.
pub fn check(host: &Host) -> Result<(), Error> {
    deadline::check_processors(host.cpus(), scarce(host).as_ref())?;
    scarce(host).map_or(Ok(()), |cpu| deadline::slices(&cpu).map(|_| ()))
}

/// Applies the restrictions of a host. `processors` are the threads of its processors.
///
/// # Errors
/// `no-contention`: the system refuses.
pub fn apply(processors: Vec<u32>, host: &Host) -> Result<Contention, Error> {
    let mut commands = Vec::new();
    let mut slices = None;
    let mut tenants = None;
    if let Some(cpu) = scarce(host) {
        slices = Some(deadline::slices(&cpu)?);
        for thread in &processors {
            deadline::limit(*thread, &cpu)?;
            commands.push(deadline::command(*thread, &cpu));
        }
    }
    if host.co_tenants > 0 {
        let processor = processor_to_share();
        for thread in &processors {
            tie(*thread, processor).map_err(|error| refused(&error))?;
            commands.push(format!("taskset --cpu-list --pid {processor} {thread}"));
        }
        tenants = Some(CoTenants::start(host.co_tenants, processor).map_err(|error| refused(&error))?);
        let command = format!("taskset --cpu-list {processor} sh -c 'while :; do :; done' &");
        commands.extend((0..host.co_tenants).map(|_| command.clone()));
    }
    let had_ns = running_ns(&processors);
    let share = host.cpu.map(|cpu| cpu.share());
    Ok(Contention { processors, share, slices, tenants, commands, began: Instant::now(), had_ns })
}

/// Makes guests with a CPU share yield to the relay's thread; returns the equivalent command.
///
/// Deadline threads run before others, including the relay under SCHED_FIFO. Among them, the one with the earliest
/// deadline runs first, so the relay gets a short one. Must be called after the guests are restricted. Returns `None`
/// if the system refuses.
pub fn yield_to(relay: u32) -> Option<String> {
    untie(relay).ok()?;
    let is_granted = |runtime: &&Span| sys::be_deadline(relay, **runtime, RELAY_PERIOD, RELAY_PERIOD).is_ok();
    let (Span(runtime), Span(period)) = (*RELAY_RUNTIMES.iter().find(is_granted)?, RELAY_PERIOD);
    Some(format!(
        "chrt --deadline --sched-runtime {runtime} --sched-deadline {period} --sched-period {period} --pid 0 {relay}"
    ))
}

impl Contention {
    /// Returns the changes, as equivalent commands.
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// Returns the CPU shares since the start and the median slice of the trial, by name. The names end with that of
    /// the host if `name` is given.
    pub fn measure(&self, name: Option<&str>) -> BTreeMap<String, f64> {
        let lasted_ns = self.began.elapsed().as_nanos() as f64 * self.processors.len() as f64;
        let got_ns = running_ns(&self.processors).zip(self.had_ns).map(|(now, had)| now.saturating_sub(had) as f64);
        let tenants_ns = self.tenants.as_ref().and_then(CoTenants::running_ns).map(|ns| ns as f64);
        let measured = [
            ("cpu_share_asked", self.share),
            ("cpu_share_received", got_ns.map(|got_ns| got_ns / lasted_ns)),
            ("cpu_slice_median_us", self.slices.map(|slices| slices.median.0 as f64 / 1e3)),
            ("co_tenants_cpu_share", tenants_ns.map(|ns| ns / lasted_ns)),
        ];
        let full = |key: &str| name.map_or_else(|| key.to_owned(), |name| format!("{key}_of_{name}"));
        measured.into_iter().filter_map(|(key, value)| Some((full(key), value?))).collect()
    }
}

impl Drop for Contention {
    fn drop(&mut self) {
        self.tenants = None;
        for thread in &self.processors {
            if self.slices.is_some() {
                // The guest may have exited already.
                let _ = sys::be_ordinary(*thread);
            }
        }
    }
}

/// Returns the CPU share of a host; `None` if the host is not restricted to a share.
fn scarce(host: &Host) -> Option<Cpu> {
    host.cpu.filter(|cpu| !cpu.is_whole())
}

/// Returns a processor to share, in turn. The last one is reserved for the relay if there are several.
fn processor_to_share() -> usize {
    let allowed = sched_getaffinity(None).map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect());
    let mut allowed: Vec<usize> = allowed.unwrap_or_else(|_| vec![0]);
    if allowed.len() > 1 {
        allowed.pop();
    }
    allowed[TAKEN.fetch_add(1, Ordering::Relaxed) % allowed.len()]
}

fn refused(error: &dyn std::fmt::Display) -> Error {
    let message = format!("a guest cannot be pinned to a shared processor: {error}");
    Error::new("no-contention", message, "check the limit of processes (ulimit -u), and that QEMU is still running")
}

#[cfg(test)]
mod tests;
