//! A table as the bytes of a Parquet file.
//!
//! The bytes depend on the rows alone (and the version of the parquet crate): rows are sorted, row groups have a fixed
//! size, nothing is written about when or where. Integers are delta-encoded, because most of them are times and counters;
//! texts and numbers go through a dictionary where that pays; pages are compressed with zstd.

use crate::column::{Cells, Column, Rows};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::sync::Arc;
use thalweg_trace::Kind;

/// Rows in a row group. A group of the widest table takes a few megabytes to read.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// The Parquet file that holds `rows`, sorted by their keys.
pub fn encode(rows: &Rows) -> Vec<u8> {
    write(rows).expect("writing well-formed columns to memory does not fail")
}

fn write(rows: &Rows) -> Result<Vec<u8>, ParquetError> {
    let schema = schema(rows.columns())?;
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties(rows.columns())))?;
    for chunk in rows.order().chunks(ROW_GROUP_ROWS) {
        let mut group = file.next_row_group()?;
        for column in rows.columns() {
            let mut writer = group.next_column()?.expect("the schema was made from these columns");
            write_column(writer.untyped(), column, chunk)?;
            writer.close()?;
        }
        group.close()?;
    }
    file.into_inner()
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::F64 => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.is_present.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
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

/// Writes the rows whose numbers are in `chunk`, in that order.
fn write_column(writer: &mut ColumnWriter<'_>, column: &Column, chunk: &[usize]) -> Result<(), ParquetError> {
    let levels: Option<Vec<i16>> =
        column.is_present.as_ref().map(|is_present| chunk.iter().map(|&row| i16::from(is_present[row])).collect());
    let levels = levels.as_deref();
    let rows = chunk.iter().copied().filter(|&row| column.is_present.as_ref().is_none_or(|present| present[row]));
    match (writer, &column.cells) {
        (ColumnWriter::Int64ColumnWriter(writer), Cells::U64(cells)) => {
            // Parquet keeps unsigned integers in the bits of signed ones.
            let values: Vec<i64> = rows.map(|row| cells[row] as i64).collect();
            writer.write_batch(&values, levels, None)?;
        }
        (ColumnWriter::DoubleColumnWriter(writer), Cells::F64(cells)) => {
            let values: Vec<f64> = rows.map(|row| cells[row]).collect();
            writer.write_batch(&values, levels, None)?;
        }
        (ColumnWriter::BoolColumnWriter(writer), Cells::Bool(cells)) => {
            let values: Vec<bool> = rows.map(|row| cells[row]).collect();
            writer.write_batch(&values, levels, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Cells::Text(texts)) => {
            let entries: Vec<ByteArray> =
                texts.entries.iter().map(|entry| ByteArray::from(entry.as_bytes().to_vec())).collect();
            let values: Vec<ByteArray> = rows.map(|row| entries[texts.cells[row] as usize].clone()).collect();
            writer.write_batch(&values, levels, None)?;
        }
        _ => unreachable!("the schema was made from these columns"),
    }
    Ok(())
}
