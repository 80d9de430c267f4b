//! Measures the share of time in which the hypervisor ran other guests instead of this machine.
//!
//! A thread sets timers at random moments. A timer that fires late, although the thread did not wait for other tasks,
//! shows that the machine had no CPU. The share of late timers approximates the share of time off CPU. This needs
//! neither the hypervisor's steal counters nor privileges.

use super::clock::monotonic_us;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bounds of the random interval between timers.
const SOONEST_US: u64 = 5_000;
const LATEST_US: u64 = 15_000;

/// Maximum delay of a timer that is not late. Such delays can be due to interrupts.
const LATE: Duration = Duration::from_millis(1);

/// Number of successive timers on a CPU.
const ALARMS_PER_CPU: u64 = 16;

const POINT_US: u64 = 200_000;

/// Maximum number of points, which cover one hour.
const POINTS: usize = 18_000;

/// Minimum number of timers for an estimate.
const MIN_ALARMS: u32 = 20;

/// Record of off-CPU time.
#[derive(Debug, Default)]
pub struct OffCpu {
    points: Mutex<VecDeque<Point>>,
}

/// Number of timers up to a moment, and number of late ones among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    at_us: u64,
    alarms: u32,
    late: u32,
}

impl OffCpu {
    /// Returns the off-CPU share between two moments of CLOCK_MONOTONIC, from 0 to 1; `None` with fewer than
    /// `MIN_ALARMS` timers in the interval. Only the last hour is known.
    pub fn share(&self, from_us: u64, to_us: u64) -> Option<f64> {
        let points = self.points();
        let until = |us: u64| points.partition_point(|point| point.at_us <= us).saturating_sub(1);
        let (from, to) = (points.get(until(from_us))?, points.get(until(to_us))?);
        let alarms = to.alarms.wrapping_sub(from.alarms);
        (alarms >= MIN_ALARMS).then(|| f64::from(to.late.wrapping_sub(from.late)) / f64::from(alarms))
    }

    fn alarm(&self, at_us: u64, is_late: bool) {
        let mut points = self.points();
        let last = points.back().copied().unwrap_or_default();
        let now = Point { at_us, alarms: last.alarms.wrapping_add(1), late: last.late.wrapping_add(is_late.into()) };
        // The latest point is updated until it is one interval after the previous one.
        let before = points.len().checked_sub(2).map(|at| points[at].at_us);
        if points.len() > 1 && before.is_some_and(|before| at_us - before < POINT_US) {
            points.pop_back();
        }
        points.push_back(now);
        if points.len() > POINTS {
            points.pop_front();
        }
    }

    fn points(&self) -> MutexGuard<'_, VecDeque<Point>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the measuring thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the measuring thread. The record stays empty on a kernel without /proc/thread-self/schedstat.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn start(off_cpu: &Arc<OffCpu>) -> io::Result<Watch> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (off_cpu, theirs) = (Arc::clone(off_cpu), Arc::clone(&is_over));
        let thread = thread::Builder::new().name("away".to_owned()).spawn(move || {
            // After an error, the record is not continued.
            let _ = watch(&off_cpu, &theirs);
        })?;
        Ok(Watch { is_over, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn watch(off_cpu: &OffCpu, is_over: &AtomicBool) -> io::Result<()> {
    let queue = Queue::of_this_thread()?;
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let mut random = Random(monotonic_us() | 1);
    let mut waited = queue.waited()?;
    for number in 0u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        if number % ALARMS_PER_CPU == 0 && cpus.len() > 1 {
            let mut only = CpuSet::new();
            only.set(cpus[(number / ALARMS_PER_CPU) as usize % cpus.len()]);
            // If this fails, the thread keeps its earlier affinity.
            let _ = sched_setaffinity(None, &only);
            waited = queue.waited()?;
        }
        let pause = Duration::from_micros(random.between(SOONEST_US, LATEST_US));
        let before = Instant::now();
        thread::sleep(pause);
        let late = before.elapsed().saturating_sub(pause);
        let now_waited = queue.waited()?;
        off_cpu.alarm(monotonic_us(), is_away(late, now_waited.saturating_sub(waited)));
        waited = now_waited;
    }
    Ok(())
}

/// Returns whether the machine was off CPU; `waited` is the time that the thread waited for other tasks.
fn is_away(late: Duration, waited: Duration) -> bool {
    late.saturating_sub(waited) > LATE
}

/// Time that a thread has waited for a CPU that ran another task (Documentation/scheduler/sched-stats.rst).
struct Queue(File);

impl Queue {
    fn of_this_thread() -> io::Result<Queue> {
        Ok(Queue(File::open("/proc/thread-self/schedstat")?))
    }

    fn waited(&self) -> io::Result<Duration> {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0)?;
        waited(&text[..length]).ok_or_else(|| io::Error::other("unexpected format of schedstat"))
    }
}

/// Parses the second number of schedstat: the nanoseconds in a run queue.
fn waited(schedstat: &[u8]) -> Option<Duration> {
    let ns = std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

/// Random numbers, so that timers do not align with the time slices of the host (xorshift64: G. Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least)
    }
}

#[cfg(test)]
impl OffCpu {
    /// Returns a record of one minute in which the machine was off CPU for this share of the time.
    pub fn with_share(share: f64) -> OffCpu {
        let off_cpu = OffCpu::default();
        for number in 0..6_000u64 {
            let is_late = ((number + 1) as f64 * share).floor() > (number as f64 * share).floor();
            off_cpu.alarm(10_000 * (number + 1), is_late);
        }
        off_cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_off_cpu_share_covers_the_requested_interval() {
        let off_cpu = OffCpu::default();
        for number in 0..3_000u64 {
            // Off CPU for half of the second 10 s of 30 s.
            off_cpu.alarm(10_000 * (number + 1), (1_000..2_000).contains(&number) && number % 2 == 0);
        }
        let share = |from_s: u64, to_s: u64| off_cpu.share(1_000_000 * from_s, 1_000_000 * to_s).unwrap();
        assert!(share(0, 9) < 0.001, "{}", share(0, 9));
        assert!((share(11, 19) - 0.5).abs() < 0.02, "{}", share(11, 19));
        assert!((share(0, 30) - 1.0 / 6.0).abs() < 0.01, "{}", share(0, 30));
        assert_eq!(off_cpu.share(5_000_000, 5_100_000), None, "ten timers are too few");
        assert_eq!(OffCpu::default().share(0, 1_000_000), None);
    }

    #[test]
    fn off_cpu_history_is_limited_to_one_hour() {
        let off_cpu = OffCpu::default();
        for number in 0..2 * 360_000u64 {
            off_cpu.alarm(10_000 * (number + 1), number < 360_000);
        }
        assert!(off_cpu.points().len() <= POINTS);
        let share = off_cpu.share(0, 7_200_000_000).unwrap();
        assert!(share < 0.01, "the hour before is not kept: {share}");
    }

    #[test]
    fn waiting_for_other_tasks_does_not_count_as_off_cpu() {
        let ms = Duration::from_millis;
        assert!(is_away(ms(10), ms(0)) && is_away(ms(10), ms(8)));
        assert!(!is_away(ms(10), ms(9)) && !is_away(ms(10), ms(11)) && !is_away(ms(1), ms(0)));
        assert_eq!(waited(b"1234 5678000 9\n"), Some(Duration::from_nanos(5_678_000)));
        assert_eq!(waited(b"none"), None);
    }

    #[test]
    fn the_off_cpu_watch_runs_on_this_machine_until_it_is_dropped() {
        let off_cpu = Arc::new(OffCpu::default());
        let watch = Watch::start(&off_cpu).unwrap();
        while off_cpu.points().back().is_none_or(|point| point.alarms < MIN_ALARMS + 1) {
            assert!(watch.thread.as_ref().is_some_and(|thread| !thread.is_finished()), "no run delays");
            thread::yield_now();
        }
        drop(watch);
        assert_eq!(Arc::strong_count(&off_cpu), 1, "the thread has ended");
    }
}
