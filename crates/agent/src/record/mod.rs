//! `record`: what the connections of this machine do, and how to look at that while it runs.

mod attachment;
mod daemon;
mod extension;
mod files;
#[cfg(test)]
pub mod fuzzed;
mod options;
mod prepared;
mod recorder;
mod rounds;
mod row;

pub use daemon::{record, record_with};
pub use extension::Extension;
pub use options::Options;
pub use prepared::RIGHTS;
