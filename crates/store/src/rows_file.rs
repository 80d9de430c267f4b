//! A file of rows in any directory.

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
    /// Writer with its own handle of the pending file, so that errors of finishing are reported unchanged.
    file: SerializedFileWriter<File>,
    of: PhantomData<fn(R)>,
}

impl<R: Row> RowsFile<R> {
    /// Creates a file that will become `target`, for rows with the columns of `like`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(target: &Path, like: &Rows<R>) -> io::Result<RowsFile<R>> {
        let mut pending = Pending::create(target)?;
        let file = encode::begin(pending.file().try_clone()?, &like.columns)?;
        Ok(RowsFile { pending, file, of: PhantomData })
    }

    /// Writes rows, sorted by their keys, as a row group.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, rows: &Rows<R>) -> io::Result<()> {
        self.write_beside(rows, &mut Repeats::default())
    }

    /// Like [`RowsFile::write`], for many groups: columns that `repeats` holds are copied instead of encoded again.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_beside(&mut self, rows: &Rows<R>, repeats: &mut Repeats) -> io::Result<()> {
        encode::write_group(&mut self.file, &rows.columns, &rows.order(), repeats)
    }

    /// Copies a row group of another file unchanged. This is fast, since nothing is decoded or encoded.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&mut self, from: &StoredRows<R>, group: usize) -> io::Result<()> {
        encode::copy_group(&mut self.file, from.file(), from.group(group))
    }

    /// Completes the file and syncs it to disk; only the rename remains.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<Pending> {
        encode::end(self.file)?;
        self.pending.sync()?;
        Ok(self.pending)
    }
}
