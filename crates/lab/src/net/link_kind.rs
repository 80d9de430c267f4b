//! What an experiment's links are made of.

/// What plays the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Our emulator, in a process.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}
