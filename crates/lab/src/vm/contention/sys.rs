//! Scheduling policies of threads, and busy child processes: sched_setattr(2), fork(2), PR_SET_PDEATHSIG(2const).
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use thalweg_units::Span;

/// `struct sched_attr` in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Number of iterations between two checks that the parent process still runs.
const TURNS: u32 = 10_000_000;

/// Sets a thread (0: the calling one) to SCHED_DEADLINE, which its children do not inherit.
pub(super) fn be_deadline(thread: u32, runtime: Span, deadline: Span, period: Span) -> io::Result<()> {
    set(thread, libc::SCHED_DEADLINE, [runtime.0, deadline.0, period.0])
}

/// Sets a thread (0: the calling one) to the ordinary policy.
pub(super) fn be_ordinary(thread: u32) -> io::Result<()> {
    set(thread, libc::SCHED_OTHER, [0; 3])
}

fn set(thread: u32, policy: libc::c_int, [runtime_ns, deadline_ns, period_ns]: [u64; 3]) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: 0,
        priority: 0,
        runtime_ns,
        deadline_ns,
        period_ns,
    };
    // SAFETY: the attributes have the declared size and outlive the call, which only reads them.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts a process that computes until it is killed, the thread that started it exits, or all write ends of the
/// non-blocking `pipe` are closed; returns its process id.
pub(super) fn compute_in_child(pipe: BorrowedFd<'_>) -> io::Result<libc::pid_t> {
    let (pipe, parent) = (pipe.as_raw_fd(), std::process::id());
    // SAFETY: the child makes system calls only on numbers, constants and its stack, takes no locks, does not allocate,
    // and exits itself: it never returns from here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: this child has nothing else to do.
            unsafe { compute(pipe, parent as libc::pid_t) }
        }
        child => Ok(child),
    }
}

/// # Safety
/// Only in a child that has nothing else to do.
unsafe fn compute(pipe: libc::c_int, parent: libc::pid_t) -> ! {
    let mut byte = 0_u8;
    // SAFETY: the calls take numbers, a constant string, and one byte on the stack.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"co-tenant".as_ptr());
        // The parent's open files would otherwise outlive the parent.
        libc::dup2(pipe, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        // The signal is not sent if the parent exited before it was requested, so the parent's id is checked too.
        while libc::getppid() == parent && libc::read(0, (&raw mut byte).cast(), 1) != 0 {
            for turn in 0..TURNS {
                std::hint::black_box(turn);
            }
        }
        libc::_exit(0)
    }
}

/// Kills a child and waits until it exits.
pub(super) fn end_child(child: libc::pid_t) {
    // SAFETY: only numbers; the child was started by this process and is not yet waited for, so its id is not reused.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
