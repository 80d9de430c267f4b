//! Path of the agent, which loads eBPF congestion controls.

use crate::error::Error;
use crate::net::probe;
use std::path::{Path, PathBuf};

/// File name of the agent.
pub(crate) const AGENT: &str = "thalweg-agent";
const AGENT_VARIABLE: &str = "THALWEG_AGENT";

/// Returns the path of the agent, or `None` if it is missing. A path in `THALWEG_AGENT` is not checked.
pub(crate) fn agent(engine: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(AGENT_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let beside = engine.with_file_name(AGENT);
    named.or_else(|| Some(beside).filter(|place| place.is_file())).or_else(|| probe::tool(AGENT))
}

/// Returns the error for a missing agent.
pub(crate) fn no_agent() -> Error {
    Error::new(
        "no-agent",
        format!("it is loaded by {AGENT}, which was not found"),
        format!("install {AGENT} next to thalweg-engine or on PATH, or set {AGENT_VARIABLE}=/path/to/{AGENT}"),
    )
}
