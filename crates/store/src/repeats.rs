//! Columns in which all rows of a group have the same value, or none has one: encoded once, and copied from then on.
//!
//! This holds for half of the columns of records, for example the name of the machine, or losses on a path without
//! loss. Encoding such a column takes as long as any other. The bytes are the same either way.

use crate::column::{Cells, Column};
use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use std::collections::HashMap;

/// Maximum number of remembered columns.
const MAX_COLUMNS: usize = 256;

/// Encoded columns, by name.
#[derive(Debug, Default)]
pub struct Repeats(HashMap<String, Repeat>);

/// A column as it was the last time that all rows were the same.
#[derive(Debug)]
struct Repeat {
    rows: usize,
    value: Option<Single>,
    /// Set when the value occurs for the second time.
    encoded: Option<Encoded>,
}

/// A column in a row group: its bytes, and its metadata in the file's footer.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Bytes,
    /// Metadata of the encoded column.
    pub written: ColumnCloseResult,
}

/// The value of all rows.
#[derive(Debug, PartialEq)]
enum Single {
    U64(i64),
    /// As bits, so that every number equals itself.
    F64(u64),
    Bool(bool),
    Text(ByteArray),
}

impl Repeats {
    /// Returns the encoded column if all of its rows have the same value, as in earlier row groups.
    ///
    /// # Errors
    /// `encode` fails.
    pub fn encoded(
        &mut self,
        column: &Column,
        rows: usize,
        encode: impl FnOnce() -> Result<Encoded, ParquetError>,
    ) -> Result<Option<Encoded>, ParquetError> {
        let Some(value) = single(column) else { return Ok(None) };
        match self.0.get_mut(&column.name) {
            Some(repeated) if repeated.rows == rows && repeated.value == value => {
                if repeated.encoded.is_none() {
                    repeated.encoded = Some(encode()?);
                }
                Ok(repeated.encoded.clone())
            }
            _ => {
                if self.0.len() >= MAX_COLUMNS {
                    self.0.clear();
                }
                self.0.insert(column.name.clone(), Repeat { rows, value, encoded: None });
                Ok(None)
            }
        }
    }
}

/// The value that all rows have, or that none has one; nothing if they are not the same.
#[expect(clippy::option_option, reason = "whether it is known, and whether there is one")]
fn single(column: &Column) -> Option<Option<Single>> {
    if column.is_blank() {
        return Some(None);
    }
    if let Some(levels) = &column.levels {
        let first = same(levels)?;
        if *first == 0 {
            return Some(None);
        }
    }
    Some(Some(match &column.cells {
        Cells::U64(cells) => Single::U64(*same(cells)?),
        Cells::F64(cells) => {
            let first = cells.first()?.to_bits();
            cells.iter().all(|cell| cell.to_bits() == first).then_some(Single::F64(first))?
        }
        Cells::Bool(cells) => Single::Bool(*same(cells)?),
        Cells::Text(texts) => Single::Text(texts.entries[*same(&texts.cells)? as usize].clone()),
    }))
}

fn same<T: PartialEq>(all: &[T]) -> Option<&T> {
    let first = all.first()?;
    all.iter().all(|value| value == first).then_some(first)
}
