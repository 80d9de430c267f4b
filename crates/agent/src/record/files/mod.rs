//! Writes records into a folder of Parquet files, each of which is complete or absent even after a crash.
//!
//! ```text
//!  the daemon's thread                        the writer thread
//!  take(row) ─► rows in memory ─► tick: due ─► a new file per flush ─► every --rotate: the files of a span are merged
//!               (bounded; what does not                                at --max-size: the oldest files are removed
//!                fit is dropped and counted)
//! ```
//!
//! The daemon's thread does not write the files: a write that takes seconds costs memory, but loses no events.
//! `docs/reference/records.md` lists the guarantees to readers, and why they hold after a kill at any time.

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

/// Rows of records in memory.
type Rows = thalweg_store::Rows<thalweg_trace::RecordRow>;

/// Kind of the rows of transfers, which have other row groups than the rows of connections: half of the columns of one
/// are empty in the other, so separate groups are smaller and faster, and a reader of one can skip the other.
const TRANSFER: &str = "transfer";

/// Minimum number of rows of a row group, if there are enough rows; a group has less than twice this number. It takes
/// about 5 MB of memory.
const GROUP_ROWS: usize = 1 << 13;
