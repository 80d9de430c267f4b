//! CPU affinity and run time of threads.

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::fs;

pub(super) fn tie(thread: u32, processor: usize) -> rustix::io::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(pid(thread), &only)
}

/// Permits a thread to run on all processors that this process may use.
pub(super) fn untie(thread: u32) -> rustix::io::Result<()> {
    sched_setaffinity(pid(thread), &sched_getaffinity(None)?)
}

fn pid(thread: u32) -> Option<Pid> {
    Pid::from_raw(thread as i32)
}

/// Returns the total run time of these threads in nanoseconds; `None` if one is unknown.
pub(super) fn running_ns(threads: &[u32]) -> Option<u64> {
    threads.iter().map(|thread| schedstat(*thread).map(|[running_ns, _]| running_ns)).sum()
}

/// Returns the times for which a thread has run and has waited for a CPU, in nanoseconds.
pub(in crate::vm) fn schedstat(thread: u32) -> Option<[u64; 2]> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}
