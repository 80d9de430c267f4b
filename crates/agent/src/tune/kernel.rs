//! The daemon's interface to the BPF program (bpf/flow/choose.h).

use super::decisions::Decisions;
use std::time::Duration;
use thalweg_policy::{ArmId, Arms, Prefix, Weights};
use thalweg_store::Problem;
use thalweg_units::Bytes;

/// Configuration of choosing that is fixed while the programs are loaded.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithms.
    pub arms: Arms,
    /// Prefix lengths of IPv4 with rows, the longest first; at most [`LENGTHS`](super::wire::LENGTHS).
    pub lengths_v4: Vec<u8>,
    /// Prefix lengths of IPv6 with rows, the longest first.
    pub lengths_v6: Vec<u8>,
    /// Whether decisions are made but not set.
    pub is_dry: bool,
    /// Whether algorithms are also chosen for loopback, private and link-local addresses.
    pub takes_private: bool,
    /// Time for which the kernel continues to choose without heartbeats.
    pub grace: Duration,
    /// Maximum time for which a client's simultaneous connections share one choice.
    pub together: Duration,
    /// Rule for open connections.
    pub loss_rule: Option<LossRule>,
    /// Minimum size of connections that have a reward.
    pub least: Bytes,
}

/// Rule of bpftune: connections with many losses switch to another algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRule {
    /// Connections that retransmit more than a share of 2^-shift of their segments switch. The shift is at least 1.
    pub shift: u8,
    /// The algorithm that they switch to.
    pub arm: ArmId,
}

/// Key of the row of a destination or a network: a prefix in a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Inode number of the namespace.
    pub netns: u32,
    /// The prefix, at most as long as the leaves of the tree.
    pub prefix: Prefix,
}

/// Probabilities of new connections to a destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Probabilities of connections that the peer opens.
    pub incoming: Weights,
    /// Probabilities of connections that this host opens.
    pub outgoing: Weights,
}

/// The operator's override of a prefix. The longest matching prefix applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Its connections are left alone.
    Keep,
    /// Its connections get this algorithm, and none is held out.
    Arm(ArmId),
    /// The prefix is within a data centre: algorithms that need ECN may be drawn, and its addresses are not excluded as
    /// private.
    DataCenter,
}

/// The BPF program that chooses algorithms.
pub trait TuneKernel {
    /// Sets the probabilities of new connections to this destination.
    ///
    /// # Errors
    /// If prefixes of that length are not looked up, or the kernel refuses.
    fn set_row(&mut self, key: RowKey, row: &Row) -> Result<(), Problem>;

    /// Sets the probabilities of new connections of this namespace to all other destinations.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_netns_row(&mut self, netns: u32, row: &Row) -> Result<(), Problem>;

    /// Removes the row of a namespace.
    fn forget_netns(&mut self, netns: u32);

    /// Sets the operator's override of a prefix, in every namespace.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn set_override(&mut self, prefix: Prefix, what: Override) -> Result<(), Problem>;

    /// Removes the operator's override of a prefix.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn forget_override(&mut self, prefix: Prefix) -> Result<(), Problem>;

    /// Removes the probabilities of a destination.
    fn forget(&mut self, key: RowKey);

    /// Sends the heartbeat of the daemon, without which the kernel stops choosing after the grace time.
    fn heartbeat(&mut self);

    /// Returns the decisions about opened connections; `None` if they cannot be read.
    fn decisions(&mut self) -> Option<Decisions>;
}
