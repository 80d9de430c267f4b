//! The terminal, which programs take over and hand back.

use super::sys;
use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};
use std::io;

/// The terminal on standard input, as it was before a command ran.
pub struct Terminal {
    attributes: Termios,
    /// Our process group, if it was in the foreground.
    group: Option<Pid>,
}

impl Terminal {
    /// Remembers its state; `None`: standard input is not a terminal.
    pub fn save() -> Option<Terminal> {
        let attributes = tcgetattr(io::stdin()).ok()?;
        let group = tcgetpgrp(io::stdin()).ok().filter(|group| *group == getpgrp());
        Some(Terminal { attributes, group })
    }

    /// Brings our process group back into the foreground, as a shell does when a command has ended. A command that was
    /// killed may have left the terminal without echo, so that is undone, too.
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
