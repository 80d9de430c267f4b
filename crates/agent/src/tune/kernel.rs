//! What the daemon tells the kernel's side (bpf/flow/choose.h): with which chance each destination gets each algorithm.

use super::decisions::Decisions;
use std::time::Duration;
use thalweg_policy::{ArmId, Arms, Prefix, Weights};
use thalweg_store::Problem;
use thalweg_units::Bytes;

/// What the programs are told before the kernel takes them.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithms.
    pub arms: Arms,
    /// Lengths of the prefixes of IPv4 that may have rows, the longest first; at most
    /// [`LENGTHS`](super::wire::LENGTHS).
    pub lengths_v4: Vec<u8>,
    /// The same of IPv6.
    pub lengths_v6: Vec<u8>,
    /// Is only decided, and nothing set?
    pub is_dry: bool,
    /// Are connections to private addresses chosen for as well?
    pub takes_private: bool,
    /// For how long the kernel goes on choosing when the daemon has died.
    pub grace: Duration,
    /// For how long at most a client's connections that are open together share one choice.
    pub together: Duration,
    /// Whether, and when, a connection at work is moved to another algorithm.
    pub loss_rule: Option<LossRule>,
    /// Connections that carried less say nothing of the path.
    pub least: Bytes,
}

/// The rule of bpftune's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRule {
    /// Who retransmits more than 2^-shift of its segments is moved; at least 1.
    pub shift: u8,
    /// To this algorithm.
    pub arm: ArmId,
}

/// A destination, in one network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The namespace's inode.
    pub netns: u32,
    /// The addresses: as long as destinations are told apart.
    pub prefix: Prefix,
}

/// The chances of a destination's new connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Of those that the peer opens.
    pub incoming: Weights,
    /// Of those that this host opens.
    pub outgoing: Weights,
}

/// What the operator has said of a prefix. The longest prefix that has an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Its connections are left alone.
    Keep,
    /// They get this algorithm, none is held out.
    Arm(ArmId),
    /// It is within a data centre: algorithms that need ECN may be chosen, and that its addresses are private is no
    /// reason to leave them alone.
    DataCenter,
}

/// The side that chooses.
pub trait TuneKernel {
    /// New connections to this destination get these chances.
    ///
    /// # Errors
    /// If prefixes of that length are not looked for, or the kernel refuses.
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem>;

    /// New connections of this namespace to all other destinations get these chances.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem>;

    /// The namespace has no chances any more: nothing is chosen there.
    fn forget_netns(&mut self, netns: u32);

    /// The operator's word for a prefix, in every namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem>;

    /// The operator says nothing of a prefix any more.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem>;

    /// The destination has no chances of its own any more.
    fn forget(&mut self, key: RowKey);

    /// The daemon is alive: the kernel goes on choosing for the grace time from now on.
    fn beat(&mut self);

    /// What was decided about connections that were opened since the start; `None`: it cannot be read.
    fn decisions(&mut self) -> Option<Decisions>;
}
