//! Restrictions of a program, set between fork and exec: prctl(2), setrlimit(2).
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Configures a process to be killed when the thread that starts it exits, and limits its files and core files.
pub(super) fn confine(command: &mut Command, max_file_bytes: u64) -> &mut Command {
    let confine = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::Fsize, limit(max_file_bytes))?;
        setrlimit(Resource::Core, limit(0))?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes three system calls and does not allocate.
    unsafe { command.pre_exec(confine) }
}
