//! `record`: what the connections of this machine do, and how to look at that while it runs.

mod assemble;
mod attachment;
mod away;
mod bell;
mod cgroups;
mod clock;
mod companion;
mod daemon;
pub mod event;
mod events;
#[cfg(test)]
pub mod fuzzed;
mod http;
mod load_config;
#[cfg(test)]
mod made_up;
pub mod measures;
mod metrics;
mod observable;
mod observed;
mod options;
mod out;
mod packed;
mod program;
pub mod reason;
mod recorder;
mod room;
mod rounds;
mod rtt;
mod serve;
mod snapshot;
pub mod socket;
mod sorting;
mod status;
mod sys;
mod table;
mod tally;
mod terminal;
pub mod top;
mod unseen;
mod usage;
mod walk;
pub mod words;

pub use away::Away;
pub use cgroups::mount_point;
pub use clock::{jiffy_ns, monotonic_us};
pub use companion::Companion;
pub use daemon::{RIGHTS, record, record_with};
pub use load_config::LoadConfig;
pub use observable::{Request, Tuning};
pub use observed::now_us;
pub use options::Options;
pub use program::Program;
pub use socket::DEFAULT as DEFAULT_SOCKET;
pub use sorting::SortBy;
pub use status::status;
