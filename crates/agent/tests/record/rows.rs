//! Reads records from their files.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// A row without its empty values.
#[derive(Clone, Debug)]
pub struct Row(BTreeMap<String, Field>);

impl Row {
    /// Returns the names of the columns that are not empty.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns a value of any type; `None` if it is empty.
    pub fn value(&self, column: &str) -> Option<&Field> {
        self.0.get(column)
    }

    /// Returns a number. Panics if it is missing.
    pub fn number(&self, column: &str) -> u64 {
        self.maybe(column).unwrap_or_else(|| panic!("{column} is empty: {self:?}"))
    }

    /// Returns a number, or `None` if it is empty.
    pub fn maybe(&self, column: &str) -> Option<u64> {
        match self.0.get(column)? {
            Field::ULong(value) => Some(*value),
            Field::Long(value) => Some(u64::try_from(*value).expect("no negative numbers")),
            other => panic!("{column}: {other:?}"),
        }
    }

    /// Returns a floating-point number; `None` if it is empty.
    pub fn fraction(&self, column: &str) -> Option<f64> {
        match self.0.get(column)? {
            Field::Double(value) => Some(*value),
            other => panic!("{column}: {other:?}"),
        }
    }

    /// Returns a text; "" if it is empty.
    pub fn text(&self, column: &str) -> &str {
        match self.0.get(column) {
            None => "",
            Some(Field::Str(value)) => value,
            Some(other) => panic!("{column}: {other:?}"),
        }
    }

    /// Returns a boolean, or `None` if it is empty.
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.0.get(column)? {
            Field::Bool(value) => Some(*value),
            other => panic!("{column}: {other:?}"),
        }
    }
}

/// Returns all rows in a folder, sorted by their end times.
pub fn read(folder: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of records") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "parquet") {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(&path).expect("a file")).expect("Parquet");
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let fields = row.get_column_iter().filter(|(_, field)| **field != Field::Null);
            rows.push(Row(fields.map(|(name, field)| (name.clone(), field.clone())).collect()));
        }
    }
    rows.sort_by_key(|row| (row.number("end_us"), row.number("connection")));
    rows
}
