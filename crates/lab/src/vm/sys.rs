//! What is done to a guest's process between fork and exec: chroot(2).
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the process that will be started see `folder` as its root, and start there.
///
/// # Errors
/// `folder` has a null byte.
pub(super) fn root_at<'a>(command: &'a mut Command, folder: &str) -> io::Result<&'a mut Command> {
    let folder = CString::new(folder)?;
    let change = move || {
        rustix::process::chroot(&*folder)?;
        rustix::process::chdir(c"/").map_err(io::Error::from)
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    Ok(unsafe { command.pre_exec(change) })
}
