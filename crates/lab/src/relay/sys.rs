//! Thread scheduling of the kernel: sched(7).
#![allow(unsafe_code)]

use std::io;

/// Returns whether the calling thread has real-time priority.
pub(super) fn is_realtime() -> bool {
    // SAFETY: the call takes no pointers; 0 is the calling thread.
    let class = unsafe { libc::sched_getscheduler(0) };
    let class = class & !libc::SCHED_RESET_ON_FORK;
    [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&class)
}

/// Sets the calling thread to the default scheduling class.
pub(super) fn be_ordinary() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
