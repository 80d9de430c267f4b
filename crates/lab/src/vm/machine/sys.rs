//! Starting a child that inherits open files and is killed with this process, which takes C functions.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, memfd_create};
use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes a file in memory that is freed when the last process closes it.
///
/// # Errors
/// There is no memory left.
pub(super) fn file_in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("thalweg-initramfs", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(content)?;
    Ok(file.into())
}

/// Lets a process inherit files under the same numbers, and has it killed when the thread that starts it ends. Must be
/// the last step before exec: entering a user namespace would undo it.
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
    // SAFETY: between fork and exec it makes system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) }
}
