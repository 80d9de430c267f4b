//! What makes the relay's thread punctual, as far as it may.

use super::sys;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::Duration;

/// Makes the calling thread wake up when it wants to: timers to the nanosecond (an ordinary thread's are 50 us late by
/// default), a processor of its own to stay on, nothing swapped out. None of them is needed to carry packets, so that
/// refusals are not errors: their cost is measured.
pub(super) fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = stay_on_one_cpu();
    // What is there now; memory that comes later is not worth the privileges that it would need.
    let _ = mlockall(MlockAllFlags::CURRENT);
}

/// The last processor that is allowed, if there are several. Interrupts and whatever starts first are mostly on the
/// first.
fn stay_on_one_cpu() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let Some(last) = last.filter(|_| allowed.count() > 1) else { return Ok(()) };
    let mut only = CpuSet::new();
    only.set(last);
    sched_setaffinity(None, &only)
}

/// Whether the calling thread runs before all ordinary ones.
pub(super) fn is_realtime() -> bool {
    sys::is_realtime()
}

/// How long the calling thread has run, the kernel's work for it included.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
