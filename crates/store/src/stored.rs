//! Reads the rows of a file by row group, to copy them into another file.

use crate::column::Column;
use crate::rows::Rows;
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::path::Path;
use thalweg_trace::{Kind, Row, Value};

/// A file with rows of type `R`.
pub struct StoredRows<R> {
    file: File,
    reader: SerializedFileReader<File>,
    of: PhantomData<fn(R)>,
}

impl<R: Row> StoredRows<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a complete Parquet file, or has other columns ([`ErrorKind::InvalidData`]).
    pub fn open(path: &Path) -> io::Result<StoredRows<R>> {
        let file = File::open(path)?;
        let reader = SerializedFileReader::new(file.try_clone()?).map_err(io_error)?;
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        let is_ours = columns.len() == R::TABLE.columns.len()
            && std::iter::zip(columns, R::TABLE.columns).all(|(column, ours)| {
                let is_optional = column.max_def_level() == 1;
                (column.name(), column.physical_type(), is_optional)
                    == (ours.name, physical(ours.kind), ours.is_optional)
            });
        if is_ours {
            Ok(StoredRows { file, reader, of: PhantomData })
        } else {
            let why = format!("its columns are not those of the table `{}`", R::TABLE.name);
            Err(io::Error::new(ErrorKind::InvalidData, why))
        }
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Returns the number of rows in a row group.
    pub fn rows(&self, group: usize) -> usize {
        usize::try_from(self.group(group).num_rows()).unwrap_or(0)
    }

    /// Whether all rows of a row group have this text in a column, according to the file's statistics. Rows without a
    /// value are not considered.
    pub fn all_have(&self, group: usize, column: &str, text: &str) -> bool {
        let named = |chunk: &&ColumnChunkMetaData| chunk.column_path().string() == column;
        let statistics = self.group(group).columns().iter().find(named).and_then(ColumnChunkMetaData::statistics);
        let text = Some(text.as_bytes());
        statistics.is_some_and(|ends| ends.min_bytes_opt() == text && ends.max_bytes_opt() == text)
    }

    /// Checks that all bytes of a row group can be read.
    ///
    /// # Errors
    /// If a byte cannot be read.
    pub fn check(&self, group: usize) -> io::Result<()> {
        let mut bytes = Vec::new();
        for column in self.group(group).columns() {
            let (start, length) = column.byte_range();
            bytes.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
            self.file.read_exact_at(&mut bytes, start)?;
        }
        Ok(())
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn group(&self, group: usize) -> &RowGroupMetaData {
        self.reader.metadata().row_group(group)
    }

    /// Appends the rows of a row group to `to`. After an error, the content of `to` is unspecified.
    ///
    /// # Errors
    /// If the rows cannot be read, or are damaged ([`ErrorKind::InvalidData`]).
    pub fn read(&self, group: usize, to: &mut Rows<R>) -> io::Result<()> {
        let group = self.reader.get_row_group(group).map_err(io_error)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        for (number, column) in to.columns.iter_mut().enumerate() {
            group.get_column_reader(number).and_then(|reader| read(reader, rows, column)).map_err(io_error)?;
        }
        to.count += rows;
        Ok(())
    }
}

fn physical(kind: Kind) -> Physical {
    match kind {
        Kind::U64 => Physical::INT64,
        Kind::F64 => Physical::DOUBLE,
        Kind::Bool => Physical::BOOLEAN,
        Kind::Text => Physical::BYTE_ARRAY,
    }
}

fn read(reader: ColumnReader, rows: usize, to: &mut Column) -> Result<(), ParquetError> {
    match reader {
        ColumnReader::Int64ColumnReader(reader) => append(reader, rows, to, |value| Ok(Value::U64(*value as u64))),
        ColumnReader::DoubleColumnReader(reader) => append(reader, rows, to, |value| Ok(Value::F64(*value))),
        ColumnReader::BoolColumnReader(reader) => append(reader, rows, to, |value| Ok(Value::Bool(*value))),
        ColumnReader::ByteArrayColumnReader(reader) => {
            append(reader, rows, to, |value: &ByteArray| value.as_utf8().map(Value::Text))
        }
        _ => unreachable!("the types of columns were looked at when the file was opened"),
    }
}

fn append<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    to: &mut Column,
    value: impl for<'a> Fn(&'a T::T) -> Result<Value<'a>, ParquetError>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let is_optional = to.levels.is_some();
    let (found, ..) = reader.read_records(rows, is_optional.then_some(&mut levels), None, &mut values)?;
    if found != rows {
        return Err(ParquetError::General(format!("column {} has {found} rows of {rows}", to.name)));
    }
    if !is_optional {
        levels.resize(rows, 1);
    }
    let mut values = values.iter();
    for level in levels {
        to.push(if level > 0 { value(values.next().expect("as many as levels say"))? } else { Value::Empty });
    }
    Ok(())
}

/// Returns the system error, or an error for a damaged file.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::new(ErrorKind::InvalidData, other),
        },
        error => io::Error::new(ErrorKind::InvalidData, error),
    }
}
