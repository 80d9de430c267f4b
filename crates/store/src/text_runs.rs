//! Encodes texts that occur in long runs, such as the name of a flow.
//!
//! The parquet crate hashes, compares and counts the references of every value. This module processes each text once
//! per run. The output is standard: a dictionary page and a data page of run-length encoded indices.
//!
//! Source: <https://parquet.apache.org/docs/file-format/data-pages/encodings/> ("Dictionary Encoding", "Run Length
//! Encoding").

use crate::chunk::{compress, compression};
use crate::column::{Cells, Column};
use crate::repeats::Encoded;
use parquet::basic::{Encoding, EncodingMask, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Minimum mean length of runs; for shorter runs, packed indices take less space.
const MIN_RUN_ROWS: usize = 8;

/// Maximum length of texts: the statistics of longer ones are truncated, which is left to the parquet crate.
const MAX_TEXT_BYTES: usize = 64;

struct Runs<'a> {
    /// The distinct texts, in order of their first occurrence.
    dictionary: Vec<&'a ByteArray>,
    /// Index of the text in the dictionary, and the number of rows.
    runs: Vec<(u32, u64)>,
}

/// Encodes a column for a row group, if it is a required text column whose texts are short and occur in long runs;
/// returns `None` otherwise.
///
/// # Errors
/// If compression fails.
pub fn encode(column: &Column, described: &ColumnDescPtr, order: &[u32]) -> Result<Option<Encoded>, ParquetError> {
    let Some(runs) = runs(column, order) else { return Ok(None) };
    let mut bytes = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut bytes);
    let (page, entries) = (runs.dictionary_page(), runs.dictionary.len());
    let dictionary = write(&mut pages, &page, |buf| Page::DictionaryPage {
        buf,
        num_values: entries as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    })?;
    let data = write(&mut pages, &runs.data_page(), |buf| Page::DataPage {
        buf,
        num_values: order.len() as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    })?;
    pages.close()?;
    let least = runs.dictionary.iter().copied().min_by_key(|text| text.data()).cloned();
    let greatest = runs.dictionary.iter().copied().max_by_key(|text| text.data()).cloned();
    let text_bytes =
        runs.runs.iter().map(|&(index, rows)| runs.dictionary[index as usize].len() as u64 * rows).sum::<u64>();
    let stats = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
    let metadata = ColumnChunkMetaData::builder(described.clone())
        .set_compression(compression())
        .set_encodings_mask(EncodingMask::new_from_encodings(
            [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY].iter(),
        ))
        .set_page_encoding_stats(vec![
            stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN),
            stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY),
        ])
        .set_total_compressed_size((dictionary.compressed_size + data.compressed_size) as i64)
        .set_total_uncompressed_size((dictionary.uncompressed_size + data.uncompressed_size) as i64)
        .set_num_values(order.len() as i64)
        .set_dictionary_page_offset(Some(dictionary.offset as i64))
        .set_data_page_offset(data.offset as i64)
        .set_statistics(Statistics::ByteArray(ValueStatistics::new(least, greatest, None, Some(0), false)))
        .set_unencoded_byte_array_data_bytes(Some(text_bytes as i64))
        .build()?;
    let written = ColumnCloseResult {
        bytes_written: dictionary.bytes_written + data.bytes_written,
        rows_written: order.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(Some(Encoded { bytes: bytes.into_inner()?.into(), written }))
}

fn runs<'a>(column: &'a Column, order: &[u32]) -> Option<Runs<'a>> {
    let (Cells::Text(texts), None) = (&column.cells, &column.levels) else { return None };
    let max_runs = order.len() / MIN_RUN_ROWS;
    let mut index_of: Vec<Option<u32>> = vec![None; texts.entries.len()];
    let mut runs = Runs { dictionary: Vec::new(), runs: Vec::new() };
    let mut last = None;
    for &row in order {
        let number = texts.cells[row as usize];
        if last == Some(number) {
            runs.runs.last_mut()?.1 += 1;
            continue;
        }
        if runs.runs.len() == max_runs {
            return None;
        }
        let index = *index_of[number as usize].get_or_insert_with(|| {
            runs.dictionary.push(&texts.entries[number as usize]);
            runs.dictionary.len() as u32 - 1
        });
        runs.runs.push((index, 1));
        last = Some(number);
    }
    let is_short = |text: &&ByteArray| text.len() <= MAX_TEXT_BYTES;
    (!runs.runs.is_empty() && runs.dictionary.iter().all(is_short)).then_some(runs)
}

impl Runs<'_> {
    /// Returns the dictionary page: each text, preceded by its length.
    fn dictionary_page(&self) -> Vec<u8> {
        let mut page = Vec::new();
        for text in &self.dictionary {
            page.extend((text.len() as u32).to_le_bytes());
            page.extend(text.data());
        }
        page
    }

    /// Returns the data page: the width of an index in bits, then each run as twice its number of rows (a
    /// variable-length integer) and the index.
    fn data_page(&self) -> Vec<u8> {
        let width = (u32::BITS - (self.dictionary.len() as u32 - 1).leading_zeros()).max(1);
        let mut page = vec![width as u8];
        for &(index, rows) in &self.runs {
            let mut header = rows << 1;
            while header >= 0x80 {
                page.push(header as u8 | 0x80);
                header >>= 7;
            }
            page.push(header as u8);
            page.extend(&index.to_le_bytes()[..width.div_ceil(8) as usize]);
        }
        page
    }
}

fn write(
    to: &mut SerializedPageWriter<'_, Vec<u8>>,
    page: &[u8],
    around: impl FnOnce(bytes::Bytes) -> Page,
) -> Result<PageWriteSpec, ParquetError> {
    let compressed = compress(page)?;
    to.write_page(CompressedPage::new(around(compressed.into()), page.len()))
}
