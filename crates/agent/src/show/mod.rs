//! Status, metrics and tables of a recording agent: the agent's answers, and the output of clients.

#[cfg(test)]
pub mod fixture;
#[cfg(test)]
pub mod fuzzed;
pub mod http;
pub mod metrics;
pub mod observable;
pub mod observed;
pub mod serve;
pub mod snapshot;
pub mod socket;
pub mod sorting;
pub mod status;
pub mod table;
pub mod tally;
pub mod terminal;
pub mod top;
pub mod usage;
pub mod words;
