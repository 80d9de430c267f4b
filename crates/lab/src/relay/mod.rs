//! The relay: emulated links between real interfaces.

use crate::error::Error;
use crate::host::{Stage, Stopped};
use crate::protocol::Port;
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_plan::plan::Experiment;

/// Plays the router: carries packets until told to stop.
pub fn carry(
    _stage: &Stage<'_>,
    _experiment: &Experiment,
    _senders: &[Port],
    _receiver: &Port,
    _traces: &BTreeMap<String, Vec<u64>>,
    _capture: Option<&Path>,
) -> Result<Stopped, Error> {
    unimplemented!()
}
