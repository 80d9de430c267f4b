//! Columns as the bytes of a Parquet file.
//!
//! The bytes depend on the rows and their order alone (and the version of the parquet crate): row groups have a fixed
//! size, nothing is written about when or where. Integers are delta-encoded, because most of them are times and counters;
//! texts and numbers go through a dictionary where that pays; pages are compressed with zstd.

use crate::column::{Cells, Column};
use crate::repeats::{Encoded, Repeats};
use crate::text_runs;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use thalweg_trace::Kind;

/// A Parquet file that gets `columns`.
pub fn begin<W: Write + Send>(to: W, columns: &[Column]) -> io::Result<SerializedFileWriter<W>> {
    let written = columns.iter().filter(|column| column.is_written);
    let fields: Result<_, _> = written.map(|column| field(column).map(Arc::new)).collect();
    let schema = fields.and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
    let schema: TypePtr = Arc::new(schema.expect("columns are well-formed"));
    SerializedFileWriter::new(to, schema, Arc::new(properties(columns))).map_err(io_error)
}

/// Writes what `columns` hold as a row group, its rows in the given order.
pub fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column],
    order: &[u32],
    repeats: &mut Repeats,
) -> io::Result<()> {
    let described: Vec<ColumnDescPtr> = file.schema_descr().columns().to_vec();
    let mut write = || {
        let mut group = file.next_row_group()?;
        let written = columns.iter().filter(|column| column.is_written);
        for (column, described) in std::iter::zip(written, &described) {
            let as_runs = || text_runs::encode(column, described, order);
            let alone = || as_runs()?.map_or_else(|| alone(column, order.len()), Ok);
            let encoded = match repeats.encoded(column, order.len(), alone)? {
                None => as_runs()?,
                encoded => encoded,
            };
            if let Some(Encoded { bytes, written }) = encoded {
                group.append_column(&bytes, written)?;
                continue;
            }
            let mut writer = group.next_column()?.expect("the file was begun with these columns");
            write_column(writer.untyped(), column, order)?;
            writer.close()?;
        }
        group.close().map(drop)
    };
    write().map_err(io_error)
}

/// A column as it is in a row group, wherever that is. Its rows are all the same.
fn alone(column: &Column, rows: usize) -> io::Result<Encoded> {
    let columns = std::slice::from_ref(column);
    let order: Vec<u32> = (0..u32::try_from(rows).expect("a group has fewer than 2^32 rows")).collect();
    let mut bytes = Vec::new();
    let mut file = begin(&mut bytes, columns)?;
    let mut write = || -> Result<ColumnChunkMetaData, ParquetError> {
        let mut group = file.next_row_group()?;
        let mut writer = group.next_column()?.expect("there is one column");
        write_column(writer.untyped(), column, &order)?;
        writer.close()?;
        Ok(group.close()?.column(0).clone())
    };
    let metadata = write().map_err(io_error)?;
    end(file)?;
    Ok(Encoded { bytes: bytes.into(), written: written(&metadata, rows as u64) })
}

/// What is said of a column that is copied.
fn written(metadata: &ColumnChunkMetaData, rows_written: u64) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: metadata.byte_range().1,
        rows_written,
        metadata: metadata.clone(),
        // None of these is ever written here.
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}

/// Appends a row group that is in another file, byte by byte.
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
    let levels = if column.is_blank() { Some(&[][..]) } else { column.levels.as_deref() };
    match (writer, &column.cells) {
        (ColumnWriter::Int64ColumnWriter(to), Cells::U64(cells)) => {
            let (values, levels) = gather(cells, levels, order);
            to.write_batch(&values, levels.as_deref(), None)?
        }
        (ColumnWriter::DoubleColumnWriter(to), Cells::F64(cells)) => {
            let (values, levels) = gather(cells, levels, order);
            to.write_batch(&values, levels.as_deref(), None)?
        }
        (ColumnWriter::BoolColumnWriter(to), Cells::Bool(cells)) => {
            let (values, levels) = gather(cells, levels, order);
            to.write_batch(&values, levels.as_deref(), None)?
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::Text(texts)) => {
            let (numbers, levels) = gather(&texts.cells, levels, order);
            let values: Vec<ByteArray> = numbers.iter().map(|&number| texts.entries[number as usize].clone()).collect();
            to.write_batch(&values, levels.as_deref(), None)?
        }
        _ => unreachable!("the file was begun with these columns"),
    };
    Ok(())
}

/// The values that are there, in the given order; and, where some may be missing, for each row whether it has one. Without
/// levels in the slice, no row has one.
fn gather<T: Copy>(cells: &[T], levels: Option<&[i16]>, order: &[u32]) -> (Vec<T>, Option<Vec<i16>>) {
    let all = || order.iter().map(|&row| cells[row as usize]).collect();
    let Some(levels) = levels else { return (all(), None) };
    if levels.is_empty() {
        return (Vec::new(), Some(vec![0; order.len()]));
    }
    // Most columns have a value in each row of a group, or in none.
    if levels.iter().all(|&level| level > 0) {
        return (all(), Some(vec![1; order.len()]));
    }
    if levels.iter().all(|&level| level == 0) {
        return (Vec::new(), Some(vec![0; order.len()]));
    }
    let mut values = Vec::with_capacity(order.len());
    let level = |&row: &u32| {
        let level = levels[row as usize];
        if level > 0 {
            values.push(cells[row as usize]);
        }
        level
    };
    let levels = order.iter().map(level).collect();
    (values, Some(levels))
}
