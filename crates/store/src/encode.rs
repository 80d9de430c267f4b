//! Columns as the bytes of a Parquet file.
//!
//! The bytes depend on the rows and their order alone (and the version of the parquet crate): row groups have a fixed
//! size, nothing is written about when or where. Integers are delta-encoded, because most of them are times and counters;
//! texts and numbers go through a dictionary where that pays; pages are compressed with zstd.

use crate::column::{Cells, Column};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;
use thalweg_trace::Kind;

/// A Parquet file that gets `columns`.
pub fn begin<W: Write + Send>(to: W, columns: &[Column]) -> io::Result<SerializedFileWriter<W>> {
    let fields: Result<_, _> = columns.iter().map(|column| field(column).map(Arc::new)).collect();
    let schema = fields.and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
    let schema: TypePtr = Arc::new(schema.expect("columns are well-formed"));
    SerializedFileWriter::new(to, schema, Arc::new(properties(columns))).map_err(io_error)
}

/// Writes what `columns` hold as a row group, its rows in the given order.
pub fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column],
    order: &[u32],
) -> io::Result<()> {
    let mut write = || {
        let mut group = file.next_row_group()?;
        for column in columns {
            let mut writer = group.next_column()?.expect("the file was begun with these columns");
            write_column(writer.untyped(), column, order)?;
            writer.close()?;
        }
        group.close().map(drop)
    };
    write().map_err(io_error)
}

/// Writes the end of the file.
pub fn end<W: Write + Send>(file: SerializedFileWriter<W>) -> io::Result<()> {
    file.close().map(drop).map_err(io_error)
}

/// What the system said, out of what Parquet makes of it.
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
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
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

fn write_column(writer: &mut ColumnWriter<'_>, column: &Column, order: &[u32]) -> Result<(), ParquetError> {
    let levels = column.levels.as_ref().map(|levels| gather(levels, order));
    // Of a value that is not there, only the level is written.
    let present: Option<Vec<u32>> =
        column.levels.as_ref().map(|levels| order.iter().copied().filter(|&row| levels[row as usize] > 0).collect());
    let (rows, levels) = (present.as_deref().unwrap_or(order), levels.as_deref());
    match (writer, &column.cells) {
        (ColumnWriter::Int64ColumnWriter(to), Cells::U64(cells)) => {
            to.write_batch(&gather(cells, rows), levels, None)?
        }
        (ColumnWriter::DoubleColumnWriter(to), Cells::F64(cells)) => {
            to.write_batch(&gather(cells, rows), levels, None)?
        }
        (ColumnWriter::BoolColumnWriter(to), Cells::Bool(cells)) => {
            to.write_batch(&gather(cells, rows), levels, None)?
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::Text(texts)) => {
            let values: Vec<ByteArray> =
                rows.iter().map(|&row| texts.entries[texts.cells[row as usize] as usize].clone()).collect();
            to.write_batch(&values, levels, None)?
        }
        _ => unreachable!("the file was begun with these columns"),
    };
    Ok(())
}

fn gather<T: Copy>(cells: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| cells[row as usize]).collect()
}
