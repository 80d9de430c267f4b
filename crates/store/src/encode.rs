//! Encodes columns as the bytes of a Parquet file.
//!
//! The bytes depend only on the rows, their order, their division into row groups, and the versions of the parquet and
//! zstd crates: no time or host is recorded. Integers are delta-encoded, because most of them are times and counters;
//! texts and floating-point numbers are dictionary-encoded until the dictionary is too large; pages are compressed with
//! zstd.

use crate::chunk;
use crate::column::Column;
use crate::repeats::{Encoded, Repeats};
use crate::text_runs;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use thalweg_trace::Kind;

/// Starts a Parquet file with `columns`.
pub fn begin<W: Write + Send>(to: W, columns: &[Column]) -> io::Result<SerializedFileWriter<W>> {
    let written = columns.iter().filter(|column| column.is_written);
    let fields: Result<_, _> = written.map(|column| field(column).map(Arc::new)).collect();
    let schema = fields.and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
    let schema: TypePtr = Arc::new(schema.expect("columns are well-formed"));
    SerializedFileWriter::new(to, schema, Arc::new(properties(columns))).map_err(io_error)
}

/// Writes the content of `columns` as a row group, with its rows in the given order.
pub fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column],
    order: &[u32],
    repeats: &mut Repeats,
) -> io::Result<()> {
    let described: Vec<ColumnDescPtr> = file.schema_descr().columns().to_vec();
    let properties = file.properties().clone();
    let mut write = || {
        let mut group = file.next_row_group()?;
        let written = columns.iter().filter(|column| column.is_written);
        for (column, described) in std::iter::zip(written, &described) {
            let encode = || match text_runs::encode(column, described, order)? {
                Some(encoded) => Ok(encoded),
                None => chunk::encode(column, described, &properties, order),
            };
            let Encoded { bytes, written } = match repeats.encoded(column, order.len(), encode)? {
                Some(encoded) => encoded,
                None => encode()?,
            };
            group.append_column(&bytes, written)?;
        }
        group.close().map(drop)
    };
    write().map_err(io_error)
}

/// Returns the metadata of a column that is copied.
fn written(metadata: &ColumnChunkMetaData, rows_written: u64) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: metadata.byte_range().1,
        rows_written,
        metadata: metadata.clone(),
        // This module never writes any of these.
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}

/// Appends a row group of another file by copying its bytes.
pub fn copy_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    from: &File,
    group: &RowGroupMetaData,
) -> io::Result<()> {
    let rows_written = u64::try_from(group.num_rows()).map_err(io::Error::other)?;
    let mut copy = || {
        let mut copied = file.next_row_group()?;
        for column in group.columns() {
            copied.append_column(from, written(column, rows_written))?;
        }
        copied.close().map(drop)
    };
    copy().map_err(io_error)
}

/// Writes the end of the file.
pub fn end<W: Write + Send>(file: SerializedFileWriter<W>) -> io::Result<()> {
    file.close().map(drop).map_err(io_error)
}

/// Returns the system error inside a Parquet error, or the Parquet error itself as an I/O error.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => source.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error),
        error => io::Error::other(error),
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::F64 => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.levels.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(&column.name, physical).with_logical_type(logical).with_repetition(repetition).build()
}

fn properties(columns: &[Column]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        // Pages are compressed in a later step: see chunk.rs.
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in columns.iter().filter(|column| column.kind == Kind::U64) {
        let path = ColumnPath::new(vec![column.name.clone()]);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{compression, encode, write_column};
    use parquet::column::writer::get_column_writer;
    use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
    use std::sync::Arc;
    use thalweg_trace::{Kind, Value};

    #[test]
    fn sharing_a_compressor_produces_the_bytes_of_one_compressor_per_column() {
        let mut columns: Vec<Column> =
            [Kind::U64, Kind::F64, Kind::Text].iter().map(|&kind| Column::new("column", kind, true)).collect();
        for number in 0..5_000 {
            let text = format!("text {}", number % 70);
            let values = [Value::U64(number * number), Value::F64(number as f64 / 3.0), Value::Text(&text)];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(if number % 7 == 0 { Value::Empty } else { value });
            }
        }
        let mut blank = Column::new("column", Kind::U64, true);
        (0..5_000).for_each(|_| blank.push(Value::Empty));
        columns.push(blank);
        let order: Vec<u32> = (0..5_000).rev().collect();
        for column in &columns {
            let file = begin(Vec::new(), std::slice::from_ref(column)).unwrap();
            let described = file.schema_descr().column(0);
            let encoded = encode(column, &described, file.properties(), &order).unwrap();
            let mut bytes = TrackedWrite::new(Vec::new());
            let compressed = file.properties().as_ref().clone().into_builder().set_compression(compression()).build();
            let pages = Box::new(SerializedPageWriter::new(&mut bytes));
            let mut writer = get_column_writer(described, Arc::new(compressed), pages);
            write_column(&mut writer, column, &order).unwrap();
            let metadata = writer.close().unwrap().metadata;
            assert_eq!(encoded.bytes, bytes.into_inner().unwrap());
            assert_eq!(encoded.written.metadata, metadata);
        }
    }
}
