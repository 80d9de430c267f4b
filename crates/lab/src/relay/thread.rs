//! Reduces the lateness of the relay's thread, as far as permitted.

use super::sys;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// Reduces the wakeup latency of the calling thread by minimal timer slack, a fixed processor and no swapping. Refusals
/// are not errors, because the lateness is measured.
pub(super) fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = stay_on_one_cpu();
    // Locks only current memory: with `MCL_FUTURE`, allocations beyond `RLIMIT_MEMLOCK` could fail.
    let _ = mlockall(MlockAllFlags::CURRENT);
}

/// Pins the thread to the last allowed processor if there are several: the first one usually handles more interrupts.
fn stay_on_one_cpu() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let Some(last) = last.filter(|_| allowed.count() > 1) else { return Ok(()) };
    let mut only = CpuSet::new();
    only.set(last);
    sched_setaffinity(None, &only)
}

pub(super) fn is_realtime() -> bool {
    sys::is_realtime()
}

/// Returns the CPU time of the calling thread, including the kernel's work for it.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
