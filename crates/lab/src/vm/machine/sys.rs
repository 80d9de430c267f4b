//! Files in memory, inheritance of open files, and the TSC.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, memfd_create};
use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Creates a file in memory.
///
/// # Errors
/// If the file cannot be created or written.
pub(super) fn file_in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("thalweg-initramfs", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(content)?;
    Ok(file.into())
}

/// Returns the value of the processor's time-stamp counter.
pub(super) fn tsc() -> u64 {
    // SAFETY: RDTSC only reads a register; Linux allows it in user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Makes a process inherit files under the same descriptors, and has it killed when the thread that starts it ends.
/// Must be the last step before exec, because entering a user namespace clears the death signal.
pub(super) fn hand_over<'a>(command: &'a mut Command, files: &[RawFd]) -> &'a mut Command {
    let numbers = files.to_vec();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        for number in &numbers {
            // SAFETY: fcntl with F_SETFD takes only numbers.
            if unsafe { libc::fcntl(*number, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and does not allocate.
    unsafe { command.pre_exec(prepare) }
}
