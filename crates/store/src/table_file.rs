//! A table of one experiment while it is written: whole row groups are in its file already, the last rows in memory.

use crate::atomic::Pending;
use crate::column::Column;
use crate::encode;
use crate::order;
use parquet::file::writer::SerializedFileWriter;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::{Kind, Row, Value};

/// Rows in a row group: no table keeps as many in memory. A group of the widest table takes some megabytes.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// A table of rows `R`, under way.
#[derive(Debug)]
pub struct TableFile<R> {
    pending: Pending,
    /// Writes to the pending file, through a handle of its own: what goes wrong at the end is then told as it is.
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    /// What every row has behind its own values.
    constants: Vec<SweepValue>,
    rows: usize,
    of: PhantomData<fn(R)>,
}

impl<R: Row> TableFile<R> {
    /// Begins what is to become the file `target`. Besides the table's own columns it gets one for each constant.
    pub fn create(target: &Path, constants: &BTreeMap<String, SweepValue>) -> io::Result<TableFile<R>> {
        let own = R::TABLE.columns.iter().map(|column| Column::new(column.name, column.kind, column.is_optional));
        let constant = constants.iter().map(|(name, value)| Column::new(name, kind(value), false));
        let columns: Vec<Column> = own.chain(constant).collect();
        let mut pending = Pending::create(target)?;
        let file = encode::begin(pending.file().try_clone()?, &columns)?;
        let constants = constants.values().cloned().collect();
        Ok(TableFile { pending, file, columns, constants, rows: 0, of: PhantomData })
    }

    /// Appends a row.
    pub fn push(&mut self, row: &R) -> io::Result<()> {
        let mut columns = self.columns.iter_mut();
        row.values(&mut |value| columns.next().expect("a row has as many values as its table has columns").push(value));
        for (column, constant) in columns.zip(&self.constants) {
            column.push(match constant {
                SweepValue::Bool(value) => Value::Bool(*value),
                SweepValue::Number(value) => Value::F64(*value),
                SweepValue::Text(value) => Value::Text(value),
            });
        }
        self.rows += 1;
        if self.rows == ROW_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Rows that are not written yet.
    pub fn rows_in_memory(&self) -> usize {
        self.rows
    }

    /// Writes what is left, and brings the file to the disk.
    pub fn finish(mut self) -> io::Result<Pending> {
        if self.rows > 0 {
            self.write_group()?;
        }
        encode::end(self.file)?;
        self.pending.sync()?;
        Ok(self.pending)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let columns = std::iter::zip(R::TABLE.columns, &self.columns);
        let keys = columns.filter(|(declared, _)| declared.is_key).map(|(_, column)| column);
        let order = order::by_keys(keys, self.rows);
        encode::write_group(&mut self.file, &self.columns, &order)?;
        self.columns.iter_mut().for_each(Column::clear);
        self.rows = 0;
        Ok(())
    }
}

fn kind(value: &SweepValue) -> Kind {
    match value {
        SweepValue::Bool(_) => Kind::Bool,
        SweepValue::Number(_) => Kind::F64,
        SweepValue::Text(_) => Kind::Text,
    }
}
