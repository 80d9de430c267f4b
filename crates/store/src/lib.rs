//! Run directories: the files of a run, and the guarantees that allow it to be interrupted.
//!
//! ```text
//! run.json              the plan, the engine and the host: written once            run_file
//! events.jsonl          events, one per line: append-only                          journal
//! flows/<id>.parquet    one file per experiment and table: complete or absent      tables, table_file, atomic
//! samples/ state/ queue/
//! packets/              recorded packets: a table, and of real ones a capture      tables
//! programs/<id>/        output of an experiment's programs                         directory
//! commands.log          commands that engines ran on the machine: append-only      directory
//! .lock                 held by the only engine that may write                     lock
//! ```
//!
//! Rows are written in row groups as they arrive, so the memory of the tables does not depend on the length of an
//! experiment. The tables and the capture of an experiment have temporary names until it has ended. An experiment is
//! complete if and only if its `flows` file exists, because that file is renamed into place last.
//!
//! The same plan on the same version of a deterministic engine yields the same bytes in every table: rows are sorted by
//! their keys within a row group, groups are in the order in which the engine emits rows, and tables contain neither
//! the time of the run nor the name of the machine.
//!
//! `docs/reference/run-directory.md` describes the format for readers of run directories.

mod atomic;
mod chunk;
mod column;
mod directory;
mod encode;
mod error;
mod id;
mod journal;
mod layout;
mod lock;
mod merge;
mod order;
mod problem;
mod publish;
mod repeats;
mod rows;
mod rows_file;
mod run_file;
mod shortage;
mod stored;
mod table_file;
mod tables;
mod text_runs;

pub use atomic::{Pending, remove_orphaned, remove_temporary};
pub use directory::RunDirectory;
pub use error::Error;
pub use id::{Id, experiment_id};
pub use journal::now;
pub use lock::Lock;
pub use merge::{Merged, merge};
pub use problem::{Exit, Problem};
pub use repeats::Repeats;
pub use rows::Rows;
pub use rows_file::RowsFile;
pub use run_file::{ExperimentId, Host, RunFile};
pub use shortage::{Shortage, raise_open_files};
pub use stored::StoredRows;
pub use tables::{Health, Tables};
