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
    /// Run a host.
    Host {
        /// Commands of `ip` that configure the network.
        network: Vec<String>,
        /// Congestion controls to load.
        algorithms: Vec<Algorithm>,
        /// Queue discipline of the interface; `None` for the kernel's default.
        qdisc: Option<Qdisc>,
        /// Number of processors. With two, the host runs on the first and interrupts go to the second.
        processors: u32,
        /// Files for running programs of flows; `None` if the guest runs none.
        programs: Option<Box<HostFiles>>,
    },
}

/// Files with which a guest runs programs of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostFiles {
    /// Modules of file systems.
    pub modules: Vec<Module>,
    /// Path of this program on the machine.
    pub engine: PathBuf,
    /// Folder on the machine for the output of the programs.
    pub output: PathBuf,
    /// Environment of the programs.
    pub environment: BTreeMap<String, String>,
}

/// The queue discipline of a guest's interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Qdisc {
    /// Name of the host in the scenario.
    pub host: String,
    /// Name of the queue discipline.
    pub name: String,
    /// Name of its module; `None` if it is built in or missing.
    pub module: Option<String>,
    /// The module and its dependencies.
    pub modules: Vec<Module>,
    /// Queue disciplines that the kernel has as modules.
    pub available: Vec<String>,
}

/// Traits of a guest's kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traits {
    /// Release of the kernel.
    pub release: String,
    /// Available congestion controls.
    pub algorithms: Vec<String>,
    /// Algorithms that the agent cannot load in the guest, with the reason; empty without the agent.
    pub agent_fails: BTreeMap<String, String>,
}

/// Names of the ports that connect the engine to the guest's host, and to the host that runs programs.
pub(crate) const PORT: &str = "thalweg";
pub(crate) const PROGRAMS_PORT: &str = "thalweg.programs";
