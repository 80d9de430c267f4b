//! The router when the kernel's queue disciplines carry packets.

use crate::error::Error;
use crate::host::{Stage, Stopped};
use crate::protocol::Qdiscs;
use thalweg_plan::plan::Experiment;

/// Plays a router whose kernel carries the packets.
pub fn watch_qdiscs(_stage: &Stage<'_>, _experiment: &Experiment, _watch: &Qdiscs) -> Result<Stopped, Error> {
    unimplemented!()
}
