//! What a guest is told to do, and what it answers.

use super::image::modules::Module;
use crate::algorithms::Algorithm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a guest is to do: a file in its first file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Say what the kernel has.
    Probe,
    /// Play a host.
    Host {
        /// Commands of `ip` that make its network.
        network: Vec<String>,
        /// Congestion controls to load.
        algorithms: Vec<Algorithm>,
        /// Queue discipline of its interface; nothing: the one that its kernel gives it.
        qdisc: Option<Qdisc>,
        /// Number of its processors. With two, the host runs on the first and interrupts go to the second.
        processors: u32,
        /// What it needs to run programs that make flows; nothing: it runs none.
        programs: Option<Box<HostFiles>>,
    },
}

/// What a guest needs to run programs of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostFiles {
    /// Modules of file systems, which come with the order.
    pub modules: Vec<Module>,
    /// This program, on the machine.
    pub engine: PathBuf,
    /// Folder for the programs' output, on the machine.
    pub output: PathBuf,
    /// The environment of the programs.
    pub environment: BTreeMap<String, String>,
}

/// The queue discipline of a guest's interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Qdisc {
    /// Name of the host in the scenario.
    pub host: String,
    /// Its name.
    pub name: String,
    /// The module that has it; `None`: no module has this name, so it is built in or missing.
    pub module: Option<String>,
    /// That module and those that it needs, which come with the order.
    pub modules: Vec<Module>,
    /// Those that the kernel has as modules.
    pub others: Vec<String>,
}

/// What a guest's kernel has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traits {
    /// Its release.
    pub release: String,
    /// Congestion controls that a connection can be given.
    pub algorithms: Vec<String>,
    /// Algorithms that the agent cannot load there, and why; empty where there is no agent.
    pub agent_fails: BTreeMap<String, String>,
}

/// Names of the ports that join a guest with the engine: of its host, and of the host that runs programs.
pub(crate) const PORT: &str = "thalweg";
pub(crate) const PROGRAMS_PORT: &str = "thalweg.programs";
