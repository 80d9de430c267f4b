//! Traffic of real hosts.

use crate::error::Error;
use crate::host::{Stage, Stopped};
use std::net::Ipv4Addr;
use thalweg_plan::plan::Experiment;

/// Plays a sender.
pub fn send(
    _stage: &Stage<'_>,
    _experiment: &Experiment,
    _flows: &[usize],
    _background: bool,
    _receiver: (Ipv4Addr, u16),
) -> Result<Stopped, Error> {
    unimplemented!()
}

/// Plays the receiver.
pub fn receive(_stage: &Stage<'_>, _experiment: &Experiment, _port: u16) -> Result<Stopped, Error> {
    unimplemented!()
}
