//! Names of the files and folders in a run directory.

use crate::id::Id;
use std::path::{Path, PathBuf};
use thalweg_trace::{FlowRow, PacketRow, QueueRow, Row, SampleRow, StateRow};

/// The tables of every experiment, in the order in which their files are renamed into place: `flows` last, because it
/// marks an experiment as complete.
pub(crate) const TABLES: [&str; 4] =
    [SampleRow::TABLE.name, StateRow::TABLE.name, QueueRow::TABLE.name, FlowRow::TABLE.name];

/// Returns the paths of an experiment's recorded packets: the table `packets`, and the capture.
pub(crate) fn recorded_paths(directory: &Path, id: &Id) -> [PathBuf; 2] {
    let folder = recorded_folder(directory);
    [folder.join(format!("{id}.parquet")), folder.join(format!("{id}.pcapng"))]
}

/// Returns the folder of recorded packets.
pub(crate) fn recorded_folder(directory: &Path) -> PathBuf {
    directory.join(PacketRow::TABLE.name)
}

/// Returns the folder for the output of an experiment's programs.
pub(crate) fn programs_folder(directory: &Path, id: &Id) -> PathBuf {
    directory.join("programs").join(id.as_str())
}

/// Returns the file of an experiment in a table.
pub(crate) fn table_path(directory: &Path, table: &str, id: &Id) -> PathBuf {
    directory.join(table).join(format!("{id}.parquet"))
}
