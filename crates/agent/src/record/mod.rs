//! `record`: what the connections of this machine do, and how to look at that while it runs.

// What only the recorder uses has no user yet but its tests: it comes next.
#[allow(dead_code)]
mod http;
#[cfg(test)]
mod made_up;
#[allow(dead_code)]
mod metrics;
#[allow(dead_code, unused_imports)]
mod out;
#[allow(dead_code)]
mod snapshot;
#[allow(dead_code)]
mod socket;
#[allow(dead_code)]
mod sorting;
mod status;
mod table;
mod terminal;
pub mod top;
#[allow(dead_code)]
mod usage;
mod words;

pub use socket::DEFAULT as DEFAULT_SOCKET;
pub use sorting::SortBy;
pub use status::status;
