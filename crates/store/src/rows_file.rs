//! A file of rows outside of a run directory.

use crate::atomic::Pending;
use crate::encode;
use crate::repeats::Repeats;
use crate::rows::Rows;
use crate::stored::StoredRows;
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use thalweg_trace::Row;

/// A file of rows, open for writing. Dropping it removes the file.
#[derive(Debug)]
pub struct RowsFile<R> {
    pending: Pending,
    /// Writes to the pending file through its own handle, so that errors of finishing are reported unchanged.
    file: SerializedFileWriter<File>,
    of: PhantomData<fn(R)>,
}

impl<R: Row> RowsFile<R> {
    /// Starts a file that will become `target`, for rows with the columns of `like`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(target: &Path, like: &Rows<R>) -> io::Result<RowsFile<R>> {
        let mut pending = Pending::create(target)?;
        let file = encode::begin(pending.file().try_clone()?, &like.columns)?;
        Ok(RowsFile { pending, file, of: PhantomData })
    }

    /// Writes rows, sorted by their keys, as a row group.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, rows: &Rows<R>) -> io::Result<()> {
        self.write_beside(rows, &mut Repeats::default())
    }

    /// Like the above, for many groups: columns in `repeats` that recur from group to group are encoded once.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_beside(&mut self, rows: &Rows<R>, repeats: &mut Repeats) -> io::Result<()> {
        encode::write_group(&mut self.file, &rows.columns, &rows.order(), repeats)
    }

    /// Copies a row group of another file unchanged. That is fast, since nothing is decoded or encoded.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn copy(&mut self, from: &StoredRows<R>, group: usize) -> io::Result<()> {
        encode::copy_group(&mut self.file, from.file(), from.group(group))
    }

    /// Brings the file to the disk; all that is missing then is its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> io::Result<Pending> {
        encode::end(self.file)?;
        self.pending.sync()?;
        Ok(self.pending)
    }
}
