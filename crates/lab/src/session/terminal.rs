//! Saves and restores the state of the terminal around a command.

use super::sys;
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};
use std::io;

/// Saved state of the terminal on standard input.
pub struct Terminal {
    attributes: Termios,
    /// The engine's process group, if it was in the foreground.
    group: Option<Pid>,
}

impl Terminal {
    /// Saves the state of the terminal; `None` if standard input is not a terminal.
    pub fn save() -> Option<Terminal> {
        let attributes = tcgetattr(io::stdin()).ok()?;
        let group = tcgetpgrp(io::stdin()).ok().filter(|group| *group == getpgrp());
        Some(Terminal { attributes, group })
    }

    /// Brings the engine's process group back into the foreground. Restores the terminal modes if the command was
    /// killed, because it may have left the terminal without echo.
    pub fn take_back(&self, was_killed: bool) {
        sys::ignore_ttou();
        if let Some(group) = self.group {
            let _ = tcsetpgrp(io::stdin(), group);
        }
        if was_killed {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.attributes);
        }
    }
}
