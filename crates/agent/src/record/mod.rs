//! `record`: what the connections of this machine do, and how to look at that while it runs.

mod assemble;
mod away;
mod bell;
mod cgroups;
mod clock;
mod daemon;
mod event;
mod http;
#[cfg(test)]
mod made_up;
mod metrics;
mod namespaces;
mod observed;
mod options;
mod out;
mod packed;
mod program;
mod recorder;
mod room;
mod rounds;
mod rtt;
mod snapshot;
mod socket;
mod sorting;
mod status;
mod table;
mod tally;
mod terminal;
pub mod top;
mod unseen;
mod usage;
mod walk;
mod words;

pub use daemon::record;
pub use options::Options;
pub use socket::DEFAULT as DEFAULT_SOCKET;
pub use sorting::SortBy;
pub use status::status;
