//! Run directories: the files of a run, and the guarantees that allow it to be interrupted.
//!
//! ```text
//! run.json              the plan, the engine and the host: written once            run_file
//! events.jsonl          events, a line each: append-only                    journal
//! flows/<id>.parquet    one file per experiment and table: complete or absent      tables, table_file, atomic
//! samples/ state/ queue/
//! packets/              where packets are recorded: a table and a capture each     tables
//! commands.log          commands that engines ran on the machine: append-only               directory
//! .lock                 held by the one engine that may write                      lock
//! ```
//!
//! Rows are written in row groups as they come, so that an experiment takes the same memory however long it is. Its
//! files have temporary names until it has ended. It is complete if and only if its `flows` file exists, because that
//! one is renamed into place last.
//!
//! The same plan on the same version of a deterministic engine yields the same bytes in every file: rows are in the
//! order in which the engine emits them, and files contain neither times nor names of machines.
//!
//! `docs/reference/run-directory.md` describes this for readers of run directories.
//!
//! The atomic files serve other programs, too: [`Rows`], [`RowsFile`] and [`StoredRows`] write and read files of any
//! table in any folder, and [`Lock`] marks the owner of a folder. [`Problem`] and [`Exit`] are the results of commands
//! of all binaries.

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

pub use atomic::{Pending, remove_temporary};
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
