//! The columns of every table of a run directory and of records, declared once, and the sinks that take rows.
//!
//! A table is a struct; its field names are the column names, its doc comments the texts of the reference page. With
//! the [`Row`] trait a writer can process a row of any table.
//!
//! Times are microseconds since the start of the experiment (of records: UNIX time). Counters described as "so far"
//! never decrease.

mod changes;
mod histogram;
mod queue_counters;
mod records;
mod row;
mod sink;
mod tables;

pub use changes::{Changes, Report};
pub use histogram::Histogram;
pub use queue_counters::QueueCounters;
pub use records::{RECORDS, RecordRow};
pub use row::{Column, Columns, Kind, Row, Table, Value};
pub use sink::{Memory, Nothing, Sink};
pub use tables::{FlowRow, PacketRow, QueueRow, SampleRow, StateRow, TABLES};
