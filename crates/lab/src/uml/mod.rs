//! Experiments inside a user-mode Linux kernel, in virtual time.
//!
//! ```text
//!  engine ── stdin ──► supervisor ──► linux: a kernel as a process
//!    ▲ job               │ folder    └► first process: this program ──► run: one experiment, with hosts in namespaces
//!    └──── rows ◄── files in the folder ◄──────┘
//! ```
//!
//! The guest's root is the machine's own tree (hostfs), with the rights of the user of the engine, so that the guest
//! needs no file system of its own: the hosts are this program, and `ip` and `tc` are the machine's. Its clock is
//! virtual (`time-travel=inf-cpu`): programs take no time, and when all of them wait, the clock jumps to the next
//! timer. So an experiment is not disturbed by the machine, however busy that is, and takes as long as its packets
//! need.
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
    /// What the guest is to do: a [`super::Task`].
    pub const TASK: &str = "task.json";
    /// The search path of the machine.
    pub const SEARCH_PATH: &str = "search-path";
    /// What it says: lines, each a [`super::Word`].
    pub const WORDS: &str = "words.jsonl";
    /// Grows while the guest is alive.
    pub const PULSE: &str = "pulse";
    /// What its kernel and its first process print.
    pub const CONSOLE: &str = "console";
    /// What the command of a session prints.
    pub const OUTPUT: [&str; 2] = ["stdout", "stderr"];
    /// This program.
    pub const PROGRAM: &str = "engine";
}

/// What a guest is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Say what its kernel has.
    Probe,
    /// Run an experiment.
    Run {
        experiment: Box<Experiment>,
        id: String,
        /// The plan's capacity traces.
        traces: Traces,
        /// What the kernel has, so that it is not tried again.
        traits: Traits,
        /// Where programs that make flows write to.
        programs: Option<PathBuf>,
        /// Programs of a session.
        session: Option<Box<Order>>,
    },
}

/// What a guest's kernel has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Its release.
    pub release: String,
    /// Congestion controls that a connection can be given.
    pub algorithms: Vec<String>,
    /// Queue disciplines, of those that links are made of.
    pub qdiscs: BTreeSet<String>,
}

/// Something that a guest says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// What its kernel has.
    Traits(Traits),
    /// Lines for `commands.log`.
    Log(String),
    /// A row.
    Row(HostEvent),
    /// The experiment has run to its end.
    Done(Performance),
    /// The guest cannot do what it was told.
    Failed(Error),
}
