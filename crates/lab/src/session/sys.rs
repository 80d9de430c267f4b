//! Signal handling, which rustix lacks.
#![allow(unsafe_code)]

/// Lets this process write to a terminal, and set its foreground process group, from the background.
pub(super) fn ignore_ttou() {
    // SAFETY: it only sets how a signal is handled; SIG_IGN runs no code of ours.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}
