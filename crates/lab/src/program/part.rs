//! The programs of a host, and their names in messages.

use crate::protocol::Outgoing;
use std::path::PathBuf;
use thalweg_plan::plan::{Experiment, Flow, Load};

/// The programs of one host.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Flows whose servers the host runs, and the address of the host.
    pub serves: Vec<Outgoing>,
    /// Flows whose clients the host runs, and the addresses of their servers.
    pub runs: Vec<Outgoing>,
    /// Folder for the output of all flows.
    pub folder: PathBuf,
    /// Whether the host is in a guest.
    pub in_guest: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Copy {
    pub flow: usize,
    pub copy: u64,
}

/// Returns the name of a program in messages; `kind` is `server` or `client`.
pub(super) fn name(kind: &str, experiment: &Experiment, of: Copy) -> String {
    let flow = &experiment.flows[of.flow];
    let copy = if flow.count > 1 { format!(" (copy {})", of.copy) } else { String::new() };
    format!("the {kind} of the flow `{}`{copy}", flow.name)
}

/// Returns the size for a flow's server; `None` if the flow has no size or several.
pub(super) fn size_of(flow: &Flow) -> Option<u64> {
    match &flow.load {
        Load::Sizes { sizes_bytes } if sizes_bytes.len() == 1 => Some(sizes_bytes[0].0),
        _ => None,
    }
}
