//! Queue of commands from standard input.

use crate::error::Error;
use crate::protocol::Command;
use crate::wakeup::Wakeup;
use std::io::BufRead;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::{iter, process};

/// Queue of commands. The process exits when standard input is closed.
#[derive(Debug)]
pub struct CommandQueue {
    commands: Receiver<Command>,
    wakeup: Wakeup,
}

impl CommandQueue {
    /// Starts the thread that reads standard input.
    ///
    /// # Errors
    /// If the system refuses to create a descriptor or a thread.
    pub fn open() -> Result<CommandQueue, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new("no-resources", format!("cannot read commands: {error}"), "close other programs and try again")
        };
        let wakeup = Wakeup::open().map_err(|error| failed(&error))?;
        let (sender, commands) = mpsc::channel();
        let arrived = wakeup.clone();
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                match serde_json::from_str(&line) {
                    Ok(command) => {
                        // The send fails if the host is about to exit.
                        let _ = sender.send(command);
                        arrived.notify();
                    }
                    Err(error) => {
                        eprintln!("thalweg-engine host: invalid command: {error}: {line}");
                        process::exit(2);
                    }
                }
            }
            process::exit(0);
        };
        thread::Builder::new().name("commands".to_owned()).spawn(read).map_err(|error| failed(&error))?;
        Ok(CommandQueue { commands, wakeup })
    }

    /// Returns a descriptor that is readable when a command has arrived, until [`CommandQueue::try_next`] is called.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// Waits for the next command.
    pub fn next(&self) -> Command {
        self.commands.recv().unwrap_or_else(|_| process::exit(0))
    }

    /// Removes the commands that have arrived, up to and including `stop`; returns whether `stop` was among them.
    pub fn is_stopped(&self) -> bool {
        iter::from_fn(|| self.try_next()).any(|command| command == Command::Stop)
    }

    /// Returns the next command that has arrived. Must be called until it returns `None`, because it clears the wakeup.
    pub fn try_next(&self) -> Option<Command> {
        self.wakeup.clear();
        match self.commands.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => process::exit(0),
        }
    }
}
