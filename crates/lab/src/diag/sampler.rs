//! Every connection of a network namespace, in one question to the kernel.

use super::{CcInfo, TcpInfo};
use crate::error::Error;

/// Asks for every connection of this network namespace.
#[derive(Debug)]
pub struct Sampler {}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Port on this side.
    pub local_port: u16,
    /// Port on the other side.
    pub remote_port: u16,
    /// What TCP tells.
    pub info: TcpInfo,
    /// What its congestion control tells.
    pub cc: CcInfo,
}

impl Sampler {
    /// Prepares to ask.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> Result<Sampler, Error> {
        unimplemented!()
    }

    /// Gives every TCP socket over IPv4 of this network namespace that can still send or be acknowledged.
    ///
    /// # Errors
    /// The kernel refuses, or answers with what cannot be read.
    pub fn dump(&mut self, _each: &mut dyn FnMut(&Socket)) -> Result<(), Error> {
        unimplemented!()
    }
}
