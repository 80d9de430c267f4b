//! The values of a column, buffered until their row group is written.

use parquet::data_type::ByteArray;
use std::collections::HashMap;
use thalweg_trace::{Kind, Value};

/// Maximum number of texts that a column keeps when it is cleared. If it has more, it discards all of them.
const MAX_TEXTS: usize = 256;

/// The values of one column.
#[derive(Debug)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// Type of the values.
    pub kind: Kind,
    /// Whether the column is written to files.
    pub is_written: bool,
    /// For each row, 1 if there is a value and 0 if not; `None` for a column that always has a value.
    pub levels: Option<Vec<i16>>,
    /// The values of all rows; unspecified where a cell is empty.
    pub cells: Cells,
    /// Number of rows, while none of them has a value and `levels` and `cells` are empty; otherwise 0.
    pub blank_rows: usize,
}

/// Values of one type.
#[derive(Debug)]
pub enum Cells {
    /// Unsigned integers, which Parquet stores in the bits of signed ones.
    U64(Vec<i64>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
}

impl Column {
    /// Creates a column without values.
    pub fn new(name: &str, kind: Kind, is_optional: bool) -> Column {
        let cells = match kind {
            Kind::U64 => Cells::U64(Vec::new()),
            Kind::F64 => Cells::F64(Vec::new()),
            Kind::Bool => Cells::Bool(Vec::new()),
            Kind::Text => Cells::Text(Texts::default()),
        };
        Column {
            name: name.to_owned(),
            kind,
            is_written: true,
            levels: is_optional.then(Vec::new),
            cells,
            blank_rows: 0,
        }
    }

    /// Appends the value of a row.
    // When inlined, the compiler knows the type of the value at the call.
    #[inline(always)]
    pub fn push(&mut self, value: Value<'_>) {
        if self.holds_no_row() {
            if value == Value::Empty {
                self.blank_rows += 1;
                return;
            }
            self.fill();
        }
        match &mut self.levels {
            Some(levels) => levels.push(i16::from(value != Value::Empty)),
            None => assert!(value != Value::Empty, "column {} must not be empty", self.name),
        }
        match (&mut self.cells, value) {
            (Cells::U64(cells), Value::U64(value)) => cells.push(value as i64),
            (Cells::F64(cells), Value::F64(value)) => cells.push(value),
            (Cells::Bool(cells), Value::Bool(value)) => cells.push(value),
            (Cells::Text(cells), Value::Text(value)) => cells.push(value),
            (Cells::U64(cells), Value::Empty) => cells.push(0),
            (Cells::F64(cells), Value::Empty) => cells.push(0.0),
            (Cells::Bool(cells), Value::Empty) => cells.push(false),
            (Cells::Text(cells), Value::Empty) => cells.push_none(),
            (_, value) => refused(&self.name, value),
        }
    }

    /// Appends the values of several rows.
    // Inlined for the same reason as `push`.
    #[inline(always)]
    pub fn extend<'a>(&mut self, values: impl ExactSizeIterator<Item = Value<'a>> + Clone) {
        let is_there = |value: Value<'_>| !matches!(value, Value::Empty);
        if self.holds_no_row() {
            if !values.clone().any(is_there) {
                self.blank_rows += values.len();
                return;
            }
            self.fill();
        }
        match &mut self.levels {
            Some(levels) => levels.extend(values.clone().map(|value| i16::from(is_there(value)))),
            None => assert!(values.clone().all(is_there), "column {} must not be empty", self.name),
        }
        let name = &self.name;
        match &mut self.cells {
            Cells::U64(cells) => cells.extend(values.map(|value| match value {
                Value::U64(value) => value as i64,
                Value::Empty => 0,
                value => refused(name, value),
            })),
            Cells::F64(cells) => cells.extend(values.map(|value| match value {
                Value::F64(value) => value,
                Value::Empty => 0.0,
                value => refused(name, value),
            })),
            Cells::Bool(cells) => cells.extend(values.map(|value| match value {
                Value::Bool(value) => value,
                Value::Empty => false,
                value => refused(name, value),
            })),
            Cells::Text(cells) => values.for_each(|value| match value {
                Value::Text(value) => cells.push(value),
                Value::Empty => cells.push_none(),
                value => refused(name, value),
            }),
        }
    }

    /// Whether there are rows and none of them has a value.
    pub fn is_blank(&self) -> bool {
        self.blank_rows > 0
    }

    /// Whether the column is optional and no row so far has a value. Such rows are only counted.
    #[inline]
    fn holds_no_row(&self) -> bool {
        self.levels.as_ref().is_some_and(Vec::is_empty)
    }

    /// Stores the empty rows counted so far, before the first value.
    #[cold]
    fn fill(&mut self) {
        let rows = std::mem::take(&mut self.blank_rows);
        self.levels.get_or_insert_default().resize(rows, 0);
        match &mut self.cells {
            Cells::U64(cells) => cells.resize(rows, 0),
            Cells::F64(cells) => cells.resize(rows, 0.0),
            Cells::Bool(cells) => cells.resize(rows, false),
            Cells::Text(texts) => texts.cells.resize(rows, 0),
        }
    }

    /// Clears the values, but keeps their memory.
    pub fn clear(&mut self) {
        self.blank_rows = 0;
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        match &mut self.cells {
            Cells::U64(cells) => cells.clear(),
            Cells::F64(cells) => cells.clear(),
            Cells::Bool(cells) => cells.clear(),
            Cells::Text(texts) => texts.clear(),
        }
    }
}

/// Panics for a value whose type differs from the column's.
#[cold]
fn refused(column: &str, value: Value<'_>) -> ! {
    panic!("column {column} cannot hold {value:?}")
}

/// Texts of a column, each stored once.
#[derive(Debug, Default)]
pub struct Texts {
    /// Every distinct text, including texts of rows that were cleared.
    pub entries: Vec<ByteArray>,
    /// For each row, the index of its text in `entries`.
    pub cells: Vec<u32>,
    numbers: HashMap<String, u32>,
    /// For each entry, the entry that followed it last time.
    followers: Vec<u32>,
    last: u32,
}

impl Texts {
    #[inline]
    fn push(&mut self, text: &str) {
        // Texts repeat or alternate: the text that last followed the previous one is likely to follow it again.
        let number = match self.followers.get(self.last as usize) {
            Some(&likely) if self.entries[likely as usize].data() == text.as_bytes() => likely,
            _ => self.number(text),
        };
        self.cells.push(number);
        self.last = number;
    }

    /// Appends a row without a text, with an arbitrary index.
    #[inline]
    fn push_none(&mut self) {
        self.cells.push(0);
    }

    fn clear(&mut self) {
        self.cells.clear();
        if self.entries.len() > MAX_TEXTS {
            self.entries.clear();
            self.numbers.clear();
            self.followers.clear();
            self.last = 0;
        }
    }

    #[cold]
    fn number(&mut self, text: &str) -> u32 {
        let number = self.numbers.get(text).copied().unwrap_or_else(|| {
            let number = u32::try_from(self.entries.len()).expect("fewer than 2^32 different texts");
            self.entries.push(ByteArray::from(text.as_bytes().to_vec()));
            self.followers.push(number);
            self.numbers.insert(text.to_owned(), number);
            number
        });
        self.followers[self.last as usize] = number;
        number
    }
}
