//! The table of an experiment while it is being written: complete row groups are in its file, the last rows in memory.

use crate::atomic::Pending;
use crate::repeats::Repeats;
use crate::rows::Rows;
use crate::rows_file::RowsFile;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::Row;

/// Number of rows in a row group, the maximum that a table keeps in memory.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// Number of rows that are converted to columns at once. [`ROW_GROUP_ROWS`] is a multiple of it.
const BATCH_ROWS: usize = 128;

/// An unfinished table of rows `R`.
#[derive(Debug)]
pub struct TableFile<R> {
    file: RowsFile<R>,
    /// Unwritten rows, by column.
    rows: Rows<R>,
    /// The latest rows, not yet converted to columns.
    batch: Vec<R>,
    repeats: Repeats,
}

impl<R: Row> TableFile<R> {
    /// Creates a file that will become `target`. It has a column for each constant in addition to the table's columns;
    /// the columns `without` are excluded.
    pub fn create(
        target: &Path,
        constants: &BTreeMap<String, SweepValue>,
        without: &[&str],
    ) -> io::Result<TableFile<R>> {
        let mut rows = Rows::with(constants);
        without.iter().for_each(|name| rows.leave_out(name));
        Ok(TableFile { file: RowsFile::create(target, &rows)?, rows, batch: Vec::new(), repeats: Repeats::default() })
    }

    /// Appends a row.
    pub fn push(&mut self, row: R) -> io::Result<()> {
        self.batch.push(row);
        if self.batch.len() < BATCH_ROWS {
            return Ok(());
        }
        self.flush_batch();
        if self.rows.len() == ROW_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Returns the number of unwritten rows.
    pub fn rows_in_memory(&self) -> usize {
        self.rows.len() + self.batch.len()
    }

    /// Writes the remaining rows, and syncs the file to disk.
    pub fn finish(mut self) -> io::Result<Pending> {
        self.flush_batch();
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.finish()
    }

    fn flush_batch(&mut self) {
        self.rows.push_all(&self.batch);
        self.batch.clear();
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.file.write_beside(&self.rows, &mut self.repeats)?;
        self.rows.clear();
        Ok(())
    }
}
