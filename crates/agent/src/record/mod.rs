//! `record`: records the connections of this machine, and serves its state while it runs.

mod attachment;
mod daemon;
mod detail;
mod extension;
mod files;
mod options;
mod prepared;
mod recorder;
mod rounds;
mod row;

pub use daemon::{record, record_with};
pub use detail::Detail;
pub use extension::Extension;
#[cfg(test)]
pub use files::fuzzed;
pub use options::Options;
pub use prepared::RIGHTS;
