//! Implementation of an experiment's links.

/// Implementation of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The built-in emulator, in a separate process.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}
