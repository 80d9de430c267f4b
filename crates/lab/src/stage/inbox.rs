//! Commands that arrive on standard input, also while the host waits for other things.

use crate::error::Error;
use crate::protocol::Command;
use rustix::event::{EventfdFlags, eventfd};
use std::io::BufRead;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

/// Commands, in order. When standard input ends, so does the process, at once.
#[derive(Debug)]
pub struct Inbox {
    commands: Receiver<Command>,
    bell: Arc<OwnedFd>,
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
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| failed(&error))?;
        let bell = Arc::new(bell);
        let (sender, commands) = mpsc::channel();
        let ring = Arc::clone(&bell);
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                match serde_json::from_str(&line) {
                    Ok(command) => {
                        // Fails when the host is about to end; then nobody needs the command.
                        let _ = sender.send(command);
                        let _ = rustix::io::write(&*ring, &1u64.to_ne_bytes());
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
        Ok(Inbox { commands, bell })
    }

    /// Becomes readable when a command has come; [`Inbox::try_next`] makes it unreadable again.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The next command; waits for it.
    pub fn next(&self) -> Command {
        // The reading thread ends the process before it ends itself.
        self.commands.recv().unwrap_or_else(|_| process::exit(0))
    }

    /// The next command, if one has come. Call it until it returns nothing.
    pub fn try_next(&self) -> Option<Command> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
        match self.commands.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => process::exit(0),
        }
    }
}
