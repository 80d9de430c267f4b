//! Changes the root of a process between fork and exec, like switch_root(8).
#![allow(unsafe_code)]

use rustix::mount::mount_move;
use rustix::process::{chdir, chroot};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Configures a process to start in a mount namespace whose root is the file system at `folder`. After a plain
/// chroot(2), the kernel would refuse user namespaces, which sandboxes of browsers use.
///
/// # Errors
/// If `folder` contains a null byte.
pub(super) fn root_at<'a>(command: &'a mut Command, folder: &str) -> io::Result<&'a mut Command> {
    let folder = CString::new(folder)?;
    let change = move || {
        chdir(&*folder)?;
        // SAFETY: the process has one thread, and shares no descriptors.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        mount_move(c".", c"/")?;
        chroot(c".")?;
        chdir(c"/").map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure makes system calls and does not allocate.
    Ok(unsafe { command.pre_exec(change) })
}
