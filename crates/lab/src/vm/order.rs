//! Orders to a guest, and its answers.

use super::image::modules::Module;
use crate::algorithms::Algorithm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Task of a guest: a file in its initial file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Report the traits of the kernel.
    Probe,
    /// Play a host.
    Host {
        /// Commands of `ip` that make its network.
        network: Vec<String>,
        /// Congestion controls to load.
        algorithms: Vec<Algorithm>,
        /// Queue discipline of its interface; `None`: the kernel's default.
        qdisc: Option<Qdisc>,
        /// Number of its processors. With two, the host runs on the first and interrupts go to the second.
        processors: u32,
        /// Files for running programs of flows; `None`: it runs none.
        programs: Option<Box<HostFiles>>,
    },
}

/// Files with which a guest runs programs of the machine.
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
    /// Name.
    pub name: String,
    /// The module that has it; `None`: no module has this name, so it is built in or missing.
    pub module: Option<String>,
    /// Its module and dependencies, which come with the order.
    pub modules: Vec<Module>,
    /// Those that the kernel has as modules.
    pub available: Vec<String>,
}

/// Traits of a guest's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traits {
    /// Release.
    pub release: String,
    /// Available congestion controls.
    pub algorithms: Vec<String>,
    /// Algorithms that the agent cannot load there, and why; empty where there is no agent.
    pub agent_fails: BTreeMap<String, String>,
}

/// Names of the ports that join a guest with the engine: of its host, and of the host that runs programs.
pub(crate) const PORT: &str = "thalweg";
pub(crate) const PROGRAMS_PORT: &str = "thalweg.programs";
