//! Implementation of an experiment's links.

/// Implementation of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Our emulator, in a process.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}
