//! Writes records into a folder of Parquet files, each of which is complete or absent even after a crash.
//!
//! ```text
//!  the daemon's thread                        the writer thread
//!  take(row) ─► rows in memory ─► tick: due ─► a new file per flush ─► every --rotate: the files of a span are merged
//!               (bounded; what does not                                at --max-size: the oldest files are removed
//!                fit is dropped and counted)
//! ```
//!
//! The daemon's thread does not write the files, so that a slow disk does not delay the fetching of events.
//! `docs/reference/records.md` lists the guarantees to readers.

mod addresses;
mod disk;
mod folder;
#[cfg(test)]
pub mod fuzzed;
mod health;
mod key;
mod merge;
mod rotation;
mod settings;
mod waiting;
mod worker;
mod writer;

#[cfg(test)]
mod tests;

pub use addresses::Addresses;
#[cfg(test)]
use folder::Name;
pub use health::Health;
pub use key::{DEFAULT_KEY, Key};
pub use settings::Settings;
pub use writer::Writer;

type Rows = thalweg_store::Rows<thalweg_trace::RecordRow>;

/// Kind of the rows of transfers. They have separate row groups, because many of their columns are empty, and so that a
/// reader can skip the groups of the other kind.
const TRANSFER: &str = "transfer";

/// Intended minimum number of rows of a row group.
const GROUP_ROWS: usize = 1 << 13;
