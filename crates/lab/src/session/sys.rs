//! Signal handling, which rustix lacks.
#![allow(unsafe_code)]

/// Permits this process to set a terminal's foreground process group and modes from the background.
pub(super) fn ignore_ttou() {
    // SAFETY: the call only sets the disposition of a signal; SIG_IGN runs no handler.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}
