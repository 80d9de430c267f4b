//! Congestion controls: what each requires (a module, an eBPF object, the agent), and where it comes from.

mod agent;
pub mod built_in;
mod needs;
mod settings;

pub(crate) use agent::{agent, no_agent};
pub(crate) use needs::{Algorithm, File, algorithm_of, needed};
pub(crate) use settings::settings;
