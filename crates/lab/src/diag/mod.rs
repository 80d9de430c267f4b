//! What the kernel tells about connections and queues.

use crate::error::Error;
use crate::host::{Stage, Stopped};
use crate::protocol::Qdiscs;
use thalweg_plan::plan::Experiment;

/// Names of values that only one congestion control has.
pub const STATE_KEYS: &[&str] = &[];

/// Plays a router whose kernel carries the packets.
pub fn watch_qdiscs(_stage: &Stage<'_>, _experiment: &Experiment, _watch: &Qdiscs) -> Result<Stopped, Error> {
    unimplemented!()
}
