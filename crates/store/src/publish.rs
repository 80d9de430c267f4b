//! Renames the files of an experiment into place.

use crate::atomic::Pending;
use crate::error::Error;
use crate::id::Id;
use crate::layout::{TABLES, recorded_paths, table_path};
use std::fs;
use std::path::Path;

/// Renames the files of an experiment into place, in the given order: that of [`TABLES`], after any recorded packets.
/// They are already synced to disk.
pub(crate) fn publish(directory: &Path, id: &Id, files: impl IntoIterator<Item = Pending>) -> Result<(), Error> {
    files.into_iter().try_for_each(|file| {
        let path = file.target().to_owned();
        file.publish().map_err(|source| {
            for table in TABLES {
                // The first error is reported; remaining files are removed at the next start.
                let _ = fs::remove_file(table_path(directory, table, id));
            }
            for path in recorded_paths(directory, id) {
                let _ = fs::remove_file(path);
            }
            Error::io(directory, &path, source)
        })
    })
}
