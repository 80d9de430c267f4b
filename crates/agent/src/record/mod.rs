//! `record`: what the connections of this machine do, and how to look at that while it runs.

mod attachment;
mod companion;
mod daemon;
mod files;
#[cfg(test)]
pub mod fuzzed;
mod options;
mod recorder;
mod rounds;
mod row;

pub use companion::Companion;
pub use daemon::{RIGHTS, record, record_with};
pub use options::Options;
