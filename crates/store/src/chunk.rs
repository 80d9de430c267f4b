//! Encodes the values of one column in a row group as bytes.
//!
//! The parquet crate creates a separate compressor and decompressor for every column of every row group, and allocating
//! their memory is expensive. So the crate writes uncompressed pages, and each thread compresses them with a single
//! compressor. The resulting bytes are the same.

use crate::column::{Cells, Column};
use crate::repeats::Encoded;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::cell::RefCell;
use std::io;
use zstd::bulk::Compressor;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// Returns the compression of pages, as recorded in files.
pub fn compression() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

/// Compresses a page.
pub fn compress(page: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = Some(Compressor::new(ZstdLevel::default().compression_level())?);
        }
        compressor.as_mut().expect("it is there").compress(page)
    })
}

/// Encodes a column for a row group, with its rows in the given order. `properties` must disable compression.
pub fn encode(
    column: &Column,
    described: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    order: &[u32],
) -> Result<Encoded, ParquetError> {
    let mut bytes = TrackedWrite::new(Vec::new());
    let pages = Box::new(Compressing(SerializedPageWriter::new(&mut bytes)));
    let mut writer = get_column_writer(described.clone(), properties.clone(), pages);
    write_column(&mut writer, column, order)?;
    let closed = writer.close()?;
    let metadata = closed.metadata.into_builder().set_compression(compression()).build()?;
    let written = ColumnCloseResult { metadata, ..closed };
    Ok(Encoded { bytes: bytes.into_inner()?.into(), written })
}

struct Compressing<'a>(SerializedPageWriter<'a, Vec<u8>>);

impl PageWriter for Compressing<'_> {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let buf = compress(page.data())?.into();
        let compressed = match page.compressed_page().clone() {
            Page::DataPage { num_values, encoding, def_level_encoding, rep_level_encoding, statistics, .. } => {
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            Page::DictionaryPage { num_values, encoding, is_sorted, .. } => {
                Page::DictionaryPage { buf, num_values, encoding, is_sorted }
            }
            Page::DataPageV2 { .. } => unreachable!("pages have the first version"),
        };
        self.0.write_page(CompressedPage::new(compressed, page.uncompressed_size()))
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        self.0.close()
    }
}

/// Passes the values of a column to a writer, with its rows in the given order.
pub fn write_column(writer: &mut ColumnWriter<'_>, column: &Column, order: &[u32]) -> Result<(), ParquetError> {
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

/// Returns the existing values in the given order and, for optional columns, whether each row has a value. Empty
/// `levels` mean that no row has one.
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
