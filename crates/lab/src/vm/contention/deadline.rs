//! Restricts threads to a share of a processor in uninterrupted slices: SCHED_DEADLINE (sched(7),
//! Documentation/scheduler/sched-deadline.rst).
//!
//! A thread with runtime = deadline = slice runs before threads of other policies until the slice is over, and is then
//! off-CPU until the period ends. Linux checks a thread's run time at each tick unless its scheduler's feature
//! HRTICK_DL is on. The excess of a slice is subtracted from the next ones, so the share is still correct; but short
//! slices become longer and rarer than requested. Therefore, a test thread tries them first, and the measured slices
//! are reported.

use super::sys;
use crate::error::Error;
use crate::net::sysctl;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_plan::plan::Cpu;
use thalweg_units::Span;

/// Timeout of retries: the system may refuse while the bandwidth of another thread is not yet released.
const PATIENCE: Duration = Duration::from_secs(5);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

const TRIED: usize = 9;
const LONGEST_TRIAL: Duration = Duration::from_millis(1_500);
/// Minimum gap between two clock readings that ends a slice, unless half of the off-CPU time of a period is longer.
const AWAY: Duration = Duration::from_micros(200);

/// Bit in the capability mask (capabilities(7)).
const CAP_SYS_NICE: u32 = 23;

/// Slices of a busy thread on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    /// Median length.
    pub median: Span,
}

static FOUND: Mutex<BTreeMap<(u64, u64), Slices>> = Mutex::new(BTreeMap::new());

/// Returns the slices of a busy thread on this machine, from a trial or the cached result of an earlier one.
///
/// # Errors
/// `no-contention`: the system refuses the policy.
pub(super) fn slices(cpu: &Cpu) -> Result<Slices, Error> {
    let key = (cpu.slice_ns.0, cpu.period_ns.0);
    let mut measured = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(slices) = measured.get(&key) {
        return Ok(*slices);
    }
    let settings = *cpu;
    // Pauses that are much shorter than the off-CPU time of a period are pauses of the machine within a slice.
    let away = AWAY.max(Duration::from_nanos(key.1.saturating_sub(key.0) / 2));
    let trial = thread::spawn(move || limit(0, &settings).map(|()| lengths(Instant::now, away, TRIED, LONGEST_TRIAL)));
    let mut lengths = trial.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).map_or(cpu.slice_ns, |length| Span(length.as_nanos() as u64));
    measured.insert(key, Slices { median });
    Ok(Slices { median })
}

/// Checks that this machine has as many processors as a guest, and, if there are several, enough deadline bandwidth for
/// the sum of their shares.
///
/// # Errors
/// `no-contention`.
pub(super) fn check_processors(count: u32, cpu: Option<&Cpu>) -> Result<(), Error> {
    check_settings(count, cpu, &Settings::read())
}

fn check_settings(count: u32, cpu: Option<&Cpu>, settings: &Settings) -> Result<(), Error> {
    if count as usize > settings.processors.max(1) {
        let message = format!(
            "a guest with {count} processors needs {count} processors of this machine, which has {}",
            settings.processors
        );
        return Err(Error::new(
            "no-contention",
            message,
            "remove host.NAME.cpus from the scenario, or use --engine sim",
        ));
    }
    let requested = f64::from(count) * cpu.map_or(0.0, Cpu::share);
    let runtime_us = settings.rt_runtime_us.filter(|us| *us >= 0);
    let (Some(runtime_us), Some(period_us), true) = (runtime_us, settings.rt_period_us, count > 1) else {
        return Ok(());
    };
    let available = settings.processors as f64 * runtime_us as f64 / period_us as f64;
    if requested <= available {
        return Ok(());
    }
    let message = format!(
        "{count} processors of a guest at a share of {:.3} each need {requested:.3} processors, but deadline threads \
         may use at most {available:.3} (kernel.sched_rt_runtime_us, kernel.sched_rt_period_us)",
        requested / f64::from(count)
    );
    Err(Error::new("no-contention", message, "choose a smaller cpu_share, or cpus = 1"))
}

/// Restricts a thread (0: the calling one) to its share.
///
/// # Errors
/// `no-contention`: the system refuses.
pub(super) fn limit(thread: u32, cpu: &Cpu) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        match sys::be_deadline(thread, cpu.slice_ns, cpu.slice_ns, cpu.period_ns) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE => {
                thread::sleep(BETWEEN_TRIES);
            }
            outcome => return outcome.map_err(|error| refusal(&error, cpu, &Settings::read())),
        }
    }
}

/// Returns the command that has the same effect as [`limit`].
pub(super) fn command(thread: u32, cpu: &Cpu) -> String {
    let Cpu { slice_ns: Span(slice), period_ns: Span(period), .. } = cpu;
    format!("chrt --deadline --sched-runtime {slice} --sched-deadline {slice} --sched-period {period} --pid 0 {thread}")
}

/// Returns the lengths of the calling thread's next slices, except the first, which may have begun earlier.
fn lengths(clock: impl Fn() -> Instant, away: Duration, count: usize, longest: Duration) -> Vec<Duration> {
    let began = clock();
    let (mut start, mut last) = (began, began);
    let mut lengths = Vec::new();
    while lengths.len() <= count && last - began < longest {
        let now = clock();
        if now - last > away {
            lengths.push(last - start);
            start = now;
        }
        last = now;
    }
    lengths.drain(..lengths.len().min(1));
    lengths
}

/// Settings that determine whether the system admits a deadline thread.
#[derive(Debug, Default)]
struct Settings {
    may_set_priorities: bool,
    may_run_everywhere: bool,
    processors: usize,
    rt_runtime_us: Option<i64>,
    rt_period_us: Option<i64>,
    period_min_us: Option<i64>,
    period_max_us: Option<i64>,
}

impl Settings {
    fn read() -> Settings {
        let setting = |name: &str| sysctl::read(&format!("kernel.{name}"))?.parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
        let allowed = ranges(of("Cpus_allowed_list:"));
        let online = ranges(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default());
        Settings {
            may_set_priorities: u64::from_str_radix(of("CapEff:"), 16).is_ok_and(|all| all >> CAP_SYS_NICE & 1 == 1),
            may_run_everywhere: allowed >= online,
            processors: online,
            rt_runtime_us: setting("sched_rt_runtime_us"),
            rt_period_us: setting("sched_rt_period_us"),
            period_min_us: setting("sched_deadline_period_min_us"),
            period_max_us: setting("sched_deadline_period_max_us"),
        }
    }
}

/// Returns the number of processors in a list such as `0-3,5`.
fn ranges(list: &str) -> usize {
    let of = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.trim().parse::<usize>().ok()? + 1 - first.trim().parse::<usize>().ok()?)
    };
    list.trim().split(',').filter_map(of).sum()
}

/// Returns the error for a refusal, with its cause if known.
fn refusal(error: &io::Error, cpu: &Cpu, settings: &Settings) -> Error {
    let runtime_and_period = format!("{} out of every {}", cpu.slice_ns, cpu.period_ns);
    let what = format!("a guest's processor cannot get {runtime_and_period} (SCHED_DEADLINE)");
    let (why, hint) = match error.raw_os_error() {
        Some(libc::EPERM) if !settings.may_set_priorities => {
            ("this needs CAP_SYS_NICE".to_owned(), "run as root: sudo thalweg run ...".to_owned())
        }
        Some(libc::EPERM) if settings.rt_runtime_us == Some(0) => (
            "kernel.sched_rt_runtime_us is 0, which leaves no time for deadline threads".to_owned(),
            "sudo sysctl -w kernel.sched_rt_runtime_us=950000".to_owned(),
        ),
        Some(libc::EPERM) if !settings.may_run_everywhere => (
            format!(
                "a deadline thread must be allowed on all of the machine's processors, but this process is restricted \
                 ({} online)",
                settings.processors
            ),
            "start thalweg without taskset, and outside of a cpuset that excludes processors".to_owned(),
        ),
        Some(libc::EBUSY) => {
            let (runtime, period) =
                (settings.rt_runtime_us.unwrap_or(950_000), settings.rt_period_us.unwrap_or(1_000_000));
            let why = format!(
                "all deadline threads together may use {runtime} us out of {period} us on each of {} processors \
                 (kernel.sched_rt_runtime_us, kernel.sched_rt_period_us), and not enough of that is left",
                settings.processors
            );
            (
                why,
                "choose a smaller cpu_share, stop other deadline threads (ps -eLo tid,cls,comm | grep DLN), or run: \
                 sudo sysctl -w kernel.sched_rt_runtime_us=-1"
                    .to_owned(),
            )
        }
        Some(libc::EINVAL) => {
            let (least, most) = (settings.period_min_us.unwrap_or(100), settings.period_max_us.unwrap_or(1 << 22));
            let why = format!(
                "the period, cpu_slice / cpu_share, must be from {least} us to {most} us \
                 (kernel.sched_deadline_period_min_us, kernel.sched_deadline_period_max_us)"
            );
            (why, "choose another cpu_slice or cpu_share, or change these settings with sysctl -w as root".to_owned())
        }
        _ => (error.to_string(), "use Linux 3.14 or newer, which has SCHED_DEADLINE, or --engine sim".to_owned()),
    };
    Error::new("no-contention", format!("{what}: {why}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const CPU: Cpu = Cpu {
        slice_ns: Span::from_millis(10),
        period_ns: Span::from_millis(20),
        per_packet_ns: Span::ZERO,
        per_ack_ns: Span::ZERO,
        slice_jitter_ppm: 0,
        credit: None,
    };

    #[test]
    fn a_pause_of_the_machine_within_a_slice_does_not_end_the_slice() {
        // A clock that is read every 0.1 ms: slices of 20 ms in every 80 ms, each with a pause of 3 ms.
        let (began, looks) = (Instant::now(), Cell::new(0_u64));
        let clock = || {
            let look = looks.replace(looks.get() + 1);
            let (slice, within) = (look / 170, look % 170);
            let paused = if within > 70 { 3_000 } else { 0 };
            began + Duration::from_micros(80_000 * slice + 100 * within + paused)
        };
        let measured = lengths(clock, Duration::from_millis(30), 5, Duration::from_secs(1));
        assert_eq!(measured, [Duration::from_micros(19_900); 5]);
    }

    fn told(errno: i32, settings: &Settings) -> String {
        let error = refusal(&io::Error::from_raw_os_error(errno), &CPU, settings);
        assert_eq!(error.code, "no-contention");
        assert!(error.message.contains("10ms out of every 20ms"), "{error}");
        error.to_string()
    }

    #[test]
    fn the_cause_of_a_rejected_share_is_named() {
        let able =
            || Settings { may_set_priorities: true, may_run_everywhere: true, processors: 2, ..Settings::default() };
        assert!(told(libc::EPERM, &Settings::default()).contains("CAP_SYS_NICE"));
        let no_time = Settings { rt_runtime_us: Some(0), ..able() };
        assert!(told(libc::EPERM, &no_time).contains("kernel.sched_rt_runtime_us=950000"));
        let tied = Settings { may_run_everywhere: false, ..able() };
        assert!(told(libc::EPERM, &tied).contains("taskset"));
        let used_up = Settings { rt_runtime_us: Some(400_000), rt_period_us: Some(500_000), ..able() };
        let text = told(libc::EBUSY, &used_up);
        assert!(text.contains("400000 us out of 500000 us on each of 2 processors"), "{text}");
        let short = Settings { period_max_us: Some(1234), ..able() };
        assert!(told(libc::EINVAL, &short).contains("to 1234 us (kernel.sched_deadline_period_min_us"));
        assert!(told(libc::ENOSYS, &able()).contains("--engine sim"));
    }

    #[test]
    fn more_processors_than_the_machine_can_allot_are_rejected() {
        let of = |processors| Settings {
            processors,
            rt_runtime_us: Some(950_000),
            rt_period_us: Some(1_000_000),
            ..Settings::default()
        };
        let single = check_settings(2, Some(&CPU), &of(1)).unwrap_err();
        assert!(single.message.contains("needs 2 processors of this machine, which has 1"), "{single}");
        check_settings(2, Some(&CPU), &of(2)).expect("two halves of 1.9");
        let large = Cpu { slice_ns: Span::from_millis(99), period_ns: Span::from_millis(100), ..CPU };
        let refused = check_settings(2, Some(&large), &of(2)).unwrap_err();
        assert!(
            refused.message.contains("need 1.980 processors, but deadline threads may use at most 1.900"),
            "{refused}"
        );
        check_settings(1, Some(&large), &of(2)).expect("one fits");
        check_settings(2, Some(&large), &Settings { rt_runtime_us: Some(-1), ..of(2) }).expect("no limit");
    }

    #[test]
    fn processors_in_a_cpu_list_are_counted() {
        assert_eq!(["0", "0-3", "0-1,4,6-7\n", ""].map(ranges), [1, 4, 5, 0]);
    }
}
