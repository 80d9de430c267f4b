//! Experiments inside a user-mode Linux kernel, in virtual time.
//!
//! ```text
//!  engine ── stdin ──► supervisor ──► linux: a kernel as a process
//!    ▲ job               │ folder    └► first process: this program ──► run: one experiment, with hosts in namespaces
//!    └──── rows ◄── files in the folder ◄──────┘
//! ```
//!
//! The guest's root is the machine's own tree (hostfs), with the rights of the user of the engine, so the guest needs
//! no separate file system: the hosts are this program, and `ip` and `tc` are the machine's. Its clock is virtual
//! (`time-travel=inf-cpu`): programs take no time, and when all of them wait, the clock jumps to the next timer. So an
//! experiment is independent of the machine's load, and takes as long as its packets need.
//!
//! [`supervisor`] starts the kernel and sees to it that nothing outlives the engine; [`inside`] is the first process of
//! the guest; `outside` asks for an experiment and takes what comes; [`UmlKernel`] finds the kernel that was built.

mod folder;
pub mod inside;
mod kernel;
mod outside;
mod seat;
pub mod supervisor;
mod sys;

pub use kernel::UmlKernel;
pub use outside::{probe, run};

use crate::error::Error;
use crate::protocol::HostEvent;
use crate::run::Performance;
use crate::session::Order;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use thalweg_plan::plan::{Experiment, Traces};

/// Files of a guest's folder.
pub(crate) mod files {
    /// The guest's task: a [`super::Task`].
    pub const TASK: &str = "task.json";
    /// The search path of the machine.
    pub const SEARCH_PATH: &str = "search-path";
    /// The guest's messages: lines, each a [`super::Word`].
    pub const WORDS: &str = "words.jsonl";
    /// Grows while the guest is alive.
    pub const PULSE: &str = "pulse";
    /// Output of its kernel and its first process.
    pub const CONSOLE: &str = "console";
    /// Output of the command of a session.
    pub const OUTPUT: [&str; 2] = ["stdout", "stderr"];
    /// This program.
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
        /// The plan's capacity traces.
        traces: Traces,
        /// Traits of the kernel, so that they are not probed again.
        traits: Traits,
        /// Folder for the output of programs.
        programs: Option<PathBuf>,
        /// Programs of a session.
        session: Option<Box<Order>>,
    },
}

/// Traits of a guest's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Release.
    pub release: String,
    /// Available congestion controls.
    pub algorithms: Vec<String>,
    /// Available queue disciplines, among those used for links.
    pub qdiscs: BTreeSet<String>,
}

/// A message of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Traits of its kernel.
    Traits(Traits),
    /// Lines for `commands.log`.
    Log(String),
    /// A row.
    Row(HostEvent),
    /// The experiment has run to its end.
    Done(Performance),
    /// The guest cannot execute its task.
    Failed(Error),
}
