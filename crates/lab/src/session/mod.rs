//! Runs a program of the user on an emulated path: the implementation of `thalweg shell`.
//!
//! ```text
//!  engine ──► network, router, hosts, as of an experiment without flows
//!    ├── command    in the namespace of one end; its exit ends the session
//!    ├── server     in the namespace of the other end, started first
//!    ├── forwarder  listens at the other end, connects to services of the machine
//!    └── reaper     ends what the programs leave in the namespaces, also when the engine is killed
//! ```
//!
//! The command is in the engine's process group, so that the terminal sends Ctrl-C and Ctrl-Z to it, and an interactive
//! shell can become the terminal's foreground process. It sees the machine's file system.

pub(crate) mod observer;
mod programs;
mod reach;
mod reaper;
mod sys;
mod terminal;

pub use reach::listen;
pub use reaper::reap;
pub use terminal::Terminal;

pub(crate) use programs::Programs;

use crate::protocol::HostEvent;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The programs of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Whether the command runs at the receiver's end of the path.
    pub is_at_receiver: bool,
    /// Command line for `sh -c` at the other end.
    pub server: Option<OsString>,
    /// File for the output of the server.
    pub server_output: PathBuf,
    /// Services of the machine that are made reachable at the other end.
    pub reach: Vec<SocketAddr>,
    /// Working directory and output of the command; `None` for those of the engine.
    pub detached: Option<Detached>,
    /// Environment variables of the programs, in addition to those of the engine.
    pub environment: Vec<(OsString, OsString)>,
}

/// Working directory and output files of a command without terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detached {
    /// Working directory.
    pub folder: PathBuf,
    /// Files to which standard output and standard error are appended.
    pub output: [PathBuf; 2],
}

/// A session: its programs, and callbacks of the engine.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The programs to run.
    pub order: &'a Order,
    /// Returns whether to end the command; polled while it runs.
    pub must_end: &'a dyn Fn() -> bool,
    /// Receives the status and, at the end, the connections.
    pub show: &'a dyn Fn(HostEvent),
}

/// Name of the measured value with the command's exit code; 128 plus the signal's number if a signal killed it.
pub const EXIT_CODE: &str = "command_exit_code";

/// Name of the measured value with the number of terminated processes that the programs left running.
pub const LEFT: &str = "processes_ended";
