//! Commands that arrive on standard input, also while the host waits for other things.

use crate::error::Error;
use crate::protocol::Command;
use crate::wakeup::Wakeup;
use std::io::BufRead;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::{iter, process};

/// Commands, in order. When standard input ends, so does the process, at once.
#[derive(Debug)]
pub struct Inbox {
    commands: Receiver<Command>,
    wakeup: Wakeup,
}

impl Inbox {
    /// Begins to read standard input.
    ///
    /// # Errors
    /// The system refuses a descriptor or a thread.
    pub fn open() -> Result<Inbox, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new("no-resources", format!("cannot read commands: {error}"), "close other programs, then try again")
        };
        let wakeup = Wakeup::open().map_err(|error| failed(&error))?;
        let (sender, commands) = mpsc::channel();
        let arrived = wakeup.clone();
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                match serde_json::from_str(&line) {
                    Ok(command) => {
                        // Fails when the host is about to end; then nobody needs the command.
                        let _ = sender.send(command);
                        arrived.notify();
                    }
                    Err(error) => {
                        eprintln!("thalweg-engine host: not a command: {error}: {line}");
                        process::exit(2);
                    }
                }
            }
            // Nobody is there any more who wants us.
            process::exit(0);
        };
        thread::Builder::new().name("commands".to_owned()).spawn(read).map_err(|error| failed(&error))?;
        Ok(Inbox { commands, wakeup })
    }

    /// Becomes readable when a command has come; [`Inbox::try_next`] makes it unreadable again.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// The next command; waits for it.
    pub fn next(&self) -> Command {
        // The reading thread ends the process before it ends itself.
        self.commands.recv().unwrap_or_else(|_| process::exit(0))
    }

    /// Takes the commands that have come, up to and including `stop`; returns whether `stop` was among them.
    pub fn is_stopped(&self) -> bool {
        iter::from_fn(|| self.try_next()).any(|command| command == Command::Stop)
    }

    /// The next command, if one has come. Call it until it returns nothing.
    pub fn try_next(&self) -> Option<Command> {
        self.wakeup.clear();
        match self.commands.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => process::exit(0),
        }
    }
}
