//! Runs experiments inside a user-mode Linux kernel, in virtual time.
//!
//! ```text
//!  engine ── stdin ──► supervisor ──► linux: a kernel as a process
//!    ▲ job               │ folder    └► first process: this program ──► run: one experiment, with hosts in namespaces
//!    └──── rows ◄── files in the folder ◄──────┘
//! ```
//!
//! The root file system of the guest is that of the machine (hostfs), with the permissions of the engine's user.
//! The guest's clock is virtual (`time-travel=inf-cpu`): programs take no time, and when all of them wait, the clock
//! jumps to the next timer. Therefore, results are independent of the machine's load.
//!
//! [`supervisor`] starts and ends the kernel; [`inside`] is the first process of the guest; `outside` is the engine's
//! side.

mod folder;
pub mod inside;
mod kernel;
mod outside;
mod seat;
pub mod supervisor;
mod sys;

pub use kernel::UmlKernel;
pub use outside::{check, probe, run};

use crate::error::Error;
use crate::protocol::HostEvent;
use crate::run::Performance;
use crate::session::Order;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use thalweg_plan::plan::{Experiment, Traces};

/// File names in the folder of a guest.
pub(crate) mod files {
    /// Task of the guest, a [`super::Task`].
    pub const TASK: &str = "task.json";
    /// Search path of the machine.
    pub const SEARCH_PATH: &str = "search-path";
    /// Messages of the guest: a [`super::Word`] per line.
    pub const WORDS: &str = "words.jsonl";
    /// Heartbeat: a file that grows while the guest is alive.
    pub const PULSE: &str = "pulse";
    /// Output of the guest's kernel and its first process.
    pub const CONSOLE: &str = "console";
    /// Output of a session's command.
    pub const OUTPUT: [&str; 2] = ["stdout", "stderr"];
    /// The engine's program.
    pub const PROGRAM: &str = "engine";
}

/// Task of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Report the traits of its kernel.
    Probe,
    /// Run an experiment.
    Run {
        experiment: Box<Experiment>,
        id: String,
        traces: Traces,
        /// Traits of the kernel, so that they need not be probed again.
        traits: Traits,
        /// Folder for the output of programs.
        programs: Option<PathBuf>,
        session: Option<Box<Order>>,
    },
}

/// Traits of a guest's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Release of the kernel.
    pub release: String,
    /// Available congestion controls.
    pub algorithms: Vec<String>,
    /// Available queue disciplines, among those used for links.
    pub qdiscs: BTreeSet<String>,
}

/// Message of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Traits of the guest's kernel.
    Traits(Traits),
    /// Lines for `commands.log`.
    Log(String),
    /// Event of a host.
    Row(HostEvent),
    /// The experiment is complete.
    Done(Performance),
    /// The guest cannot execute its task.
    Failed(Error),
}
