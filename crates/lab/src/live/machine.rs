//! Measures the share of CPU time that a machine gets.
//!
//! It reads three incomplete sources: the hypervisor's steal counter (not all hypervisors report one, and it may not
//! include time withheld by a quota), the time for which tasks waited for other tasks (pressure, which does not include
//! the hypervisor), and periodic timers on the allowed CPUs.

use crate::net::{holder::FIFO_PRIORITY, set_fifo};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The share of CPU time that a machine got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Share of busy time that the hypervisor reports as stolen; `None` if it reports no stolen time.
    pub steal_percent: Option<f64>,
    /// Share of time in which a task waited for a CPU; `None` if the kernel does not report it.
    pub pressure_percent: Option<f64>,
    /// Share of time in which the timer thread of the most delayed CPU was due but did not run; only delays above 2 ms
    /// count.
    pub stalled_percent: f64,
    /// Longest of these delays on any CPU; 0 if none exceeded 2 ms.
    pub longest_stall_us: u64,
    /// Whether the timer threads have real-time priority, so that ordinary tasks of this machine cannot delay them.
    pub is_realtime: bool,
}

impl Machine {
    /// Returns the off-CPU share, an estimate of the share of time in which the hypervisor runs other guests.
    pub fn away_percent(&self) -> f64 {
        // Delays by other tasks of this machine do not indicate activity of the hypervisor.
        let stalled = if self.is_realtime { self.stalled_percent } else { 0.0 };
        self.steal_percent.unwrap_or(0.0).max(stalled)
    }
}

const TICK: Duration = Duration::from_millis(1);

/// Minimum delay of a tick that counts as a stall. Shorter delays are attributed to interrupts.
const STALL: Duration = Duration::from_millis(2);

pub(super) struct Watch {
    start: Instant,
    times: Option<Times>,
    pressure: Option<u64>,
    is_over: Arc<AtomicBool>,
    clocks: Vec<JoinHandle<Beats>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Beats {
    stalled: Duration,
    longest: Duration,
    is_realtime: bool,
}

impl Watch {
    /// Starts the measurement.
    pub fn start() -> Watch {
        let is_over = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let clocks = cpus.map(|cpu| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || run_clock(cpu, &is_over))
        });
        let clocks = clocks.collect();
        Watch { start: Instant::now(), times: Times::read(), pressure: pressure_us(), is_over, clocks }
    }

    /// Ends the measurement, and returns the results.
    pub fn end(self) -> Machine {
        let lasted = self.start.elapsed();
        let times = self.times.zip(Times::read()).map(|(before, after)| after.since(before));
        let pressure = self.pressure.zip(pressure_us()).map(|(before, after)| after.saturating_sub(before));
        self.is_over.store(true, Ordering::Relaxed);
        let cpus = self.clocks.len();
        let beats: Vec<Beats> = self.clocks.into_iter().filter_map(|clock| clock.join().ok()).collect();
        let percent = |part: Duration| 100.0 * part.as_secs_f64() / lasted.as_secs_f64();
        Machine {
            cpus,
            steal_percent: times.and_then(Times::steal_percent),
            pressure_percent: pressure.map(|us| percent(Duration::from_micros(us)).min(100.0)),
            stalled_percent: beats.iter().map(|clock| percent(clock.stalled)).fold(0.0, f64::max),
            longest_stall_us: beats.iter().map(|clock| clock.longest.as_micros() as u64).max().unwrap_or(0),
            is_realtime: !beats.is_empty() && beats.iter().all(|clock| clock.is_realtime),
        }
    }
}

fn run_clock(cpu: usize, is_over: &AtomicBool) -> Beats {
    let mut only = CpuSet::new();
    only.set(cpu);
    // If the thread cannot be pinned, it measures the CPU that it runs on.
    let _ = sched_setaffinity(None, &only);
    let mut beats = Beats { is_realtime: set_fifo(FIFO_PRIORITY).is_ok(), ..Beats::default() };
    while !is_over.load(Ordering::Relaxed) {
        let before = Instant::now();
        std::thread::sleep(TICK);
        let late = before.elapsed().saturating_sub(TICK);
        if late > STALL {
            beats.stalled += late;
            beats.longest = beats.longest.max(late);
        }
    }
    beats
}

/// Time of all CPUs by kind, in the kernel's ticks (proc_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    busy: u64,
    steal: u64,
}

impl Times {
    fn read() -> Option<Times> {
        Times::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Times> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> = line.split_whitespace().map_while(|number| number.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = numbers[..] else { return None };
        Some(Times { busy: user + nice + system + irq + softirq, steal })
    }

    fn since(self, before: Times) -> Times {
        Times { busy: self.busy.saturating_sub(before.busy), steal: self.steal.saturating_sub(before.steal) }
    }

    /// Returns the stolen share of busy time; `None` without stolen time.
    fn steal_percent(self) -> Option<f64> {
        (self.steal > 0).then(|| 100.0 * self.steal as f64 / (self.busy + self.steal) as f64)
    }
}

/// Returns the total time since boot in which some task waited for a CPU.
fn pressure_us() -> Option<u64> {
    parse_pressure(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// Parses the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`.
fn parse_pressure(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_the_non_idle_time() {
        let before = Times::parse("cpu  100 0 50 9000 10 0 5 20 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        let after = Times::parse("cpu  130 0 70 9100 10 0 15 40 0 0\n").unwrap();
        assert_eq!(after.since(before).steal_percent(), Some(25.0));
        assert_eq!(before.since(before).steal_percent(), None);
        assert_eq!(Times::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn pressure_is_the_time_in_which_some_task_waited() {
        let text =
            "some avg10=1.00 avg60=0.50 avg300=0.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(parse_pressure(text), Some(123_456));
        assert_eq!(parse_pressure(""), None);
    }

    #[test]
    fn stalls_count_only_if_no_task_of_this_machine_can_cause_them() {
        let machine = Machine { stalled_percent: 40.0, steal_percent: Some(5.0), ..Machine::default() };
        assert_eq!(machine.away_percent(), 5.0);
        assert_eq!(Machine { is_realtime: true, ..machine }.away_percent(), 40.0);
    }

    #[test]
    fn off_cpu_time_of_this_machine_is_measured() {
        let watch = Watch::start();
        while watch.start.elapsed() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        let machine = watch.end();
        assert!(machine.cpus >= 1);
        assert!((0.0..=100.0).contains(&machine.pressure_percent.unwrap_or(0.0)), "{machine:?}");
    }
}
