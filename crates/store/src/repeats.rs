//! Copies the bytes of columns in which all rows of a group have the same value, or no value, as in the column's latest
//! such group.
//!
//! Examples are the host name, or losses on a path without loss. The resulting bytes are the same.

use crate::column::{Cells, Column};
use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use std::collections::HashMap;

const MAX_COLUMNS: usize = 256;

/// Encoded columns, by name.
#[derive(Debug, Default)]
pub struct Repeats(HashMap<String, Repeat>);

/// The latest row group of a column in which all rows were the same.
#[derive(Debug)]
struct Repeat {
    rows: usize,
    value: Option<Single>,
    /// The encoded column; set when the value occurs for the second time.
    encoded: Option<Encoded>,
}

/// A column of a row group: its bytes, and its metadata in the file's footer.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Bytes,
    /// Metadata of the encoded column.
    pub written: ColumnCloseResult,
}

#[derive(Debug, PartialEq)]
enum Single {
    U64(i64),
    /// A floating-point number as bits, so that every value equals itself.
    F64(u64),
    Bool(bool),
    Text(ByteArray),
}

impl Repeats {
    /// Returns the encoded column if its rows all have the same value, or no value, and the column's latest such row
    /// group had the same value and number of rows; `None` otherwise. Calls `encode` only at the first repetition.
    ///
    /// # Errors
    /// If `encode` fails.
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

/// Returns the value of all rows, `Some(None)` if no row has a value, or `None` if the rows differ.
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
