//! A table of one experiment while it is written: whole row groups are in its file already, the last rows in memory.

use crate::atomic::Pending;
use crate::rows::Rows;
use crate::rows_file::RowsFile;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::Row;

/// Rows in a row group: no table keeps as many in memory. A group of the widest table takes some megabytes.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// A table of rows `R`, under way.
#[derive(Debug)]
pub struct TableFile<R> {
    file: RowsFile<R>,
    /// What is not written yet.
    rows: Rows<R>,
}

impl<R: Row> TableFile<R> {
    /// Begins what is to become the file `target`. Besides the table's own columns it gets one for each constant; the columns
    /// `without` are left out.
    pub fn create(
        target: &Path,
        constants: &BTreeMap<String, SweepValue>,
        without: &[&str],
    ) -> io::Result<TableFile<R>> {
        let mut rows = Rows::with(constants);
        without.iter().for_each(|name| rows.leave_out(name));
        Ok(TableFile { file: RowsFile::create(target, &rows)?, rows })
    }

    /// Appends a row.
    pub fn push(&mut self, row: &R) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() == ROW_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Rows that are not written yet.
    pub fn rows_in_memory(&self) -> usize {
        self.rows.len()
    }

    /// Writes what is left, and brings the file to the disk.
    pub fn finish(mut self) -> io::Result<Pending> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.finish()
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.file.write(&self.rows)?;
        self.rows.clear();
        Ok(())
    }
}
