//! Rows turned into columns while they arrive.

use std::cmp::Ordering;
use std::collections::HashMap;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::{Kind, Row, Table, Value};

/// Rows of one table, kept by column.
#[derive(Debug)]
pub struct Rows {
    table: &'static Table,
    columns: Vec<Column>,
    count: usize,
}

impl Rows {
    /// No rows yet.
    pub fn of<R: Row>() -> Rows {
        let columns = R::TABLE.columns.iter().map(|c| Column::new(c.name, c.kind, c.is_optional)).collect();
        Rows { table: R::TABLE, columns, count: 0 }
    }

    /// Appends a row of the table that this was made for.
    pub fn push<R: Row>(&mut self, row: &R) {
        assert_eq!(R::TABLE.name, self.table.name, "a row went to another table");
        let mut columns = self.columns.iter_mut();
        row.values(&mut |value| columns.next().expect("a row has as many values as its table has columns").push(value));
        self.count += 1;
    }

    /// The columns, those of the sweep last.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Appends a column that has the same value in every row.
    pub fn append_sweep_column(&mut self, name: &str, value: &SweepValue) {
        let (kind, value) = match value {
            SweepValue::Bool(value) => (Kind::Bool, Value::Bool(*value)),
            SweepValue::Number(value) => (Kind::F64, Value::F64(*value)),
            SweepValue::Text(value) => (Kind::Text, Value::Text(value)),
        };
        let mut column = Column::new(name, kind, false);
        (0..self.count).for_each(|_| column.push(value));
        self.columns.push(column);
    }

    /// The numbers of the rows, sorted by the key columns; rows with equal keys stay as they came.
    pub fn order(&self) -> Vec<usize> {
        let keys: Vec<SortKey> = std::iter::zip(self.table.columns, &self.columns)
            .filter(|(declared, _)| declared.is_key)
            .map(|(_, column)| column.sort_key())
            .collect();
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|&a, &b| {
            keys.iter().map(|key| key.compare(a, b)).find(|result| result.is_ne()).unwrap_or(Ordering::Equal)
        });
        order
    }
}

/// The values of one column.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether there is a value, row by row; nothing for a column that always has one.
    pub is_present: Option<Vec<bool>>,
    /// The values; where there is none, anything.
    pub cells: Cells,
}

/// Values by kind.
#[derive(Debug)]
pub enum Cells {
    U64(Vec<u64>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Texts),
}

impl Column {
    fn new(name: &str, kind: Kind, is_optional: bool) -> Column {
        let cells = match kind {
            Kind::U64 => Cells::U64(Vec::new()),
            Kind::F64 => Cells::F64(Vec::new()),
            Kind::Bool => Cells::Bool(Vec::new()),
            Kind::Text => Cells::Text(Texts::default()),
        };
        Column { name: name.to_owned(), kind, is_present: is_optional.then(Vec::new), cells }
    }

    fn push(&mut self, value: Value<'_>) {
        match (&mut self.is_present, value) {
            (Some(is_present), value) => is_present.push(value != Value::Empty),
            (None, Value::Empty) => panic!("column {} must not be empty", self.name),
            (None, _) => {}
        }
        match (&mut self.cells, value) {
            (Cells::U64(cells), Value::U64(value)) => cells.push(value),
            (Cells::F64(cells), Value::F64(value)) => cells.push(value),
            (Cells::Bool(cells), Value::Bool(value)) => cells.push(value),
            (Cells::Text(cells), Value::Text(value)) => cells.push(value),
            (Cells::U64(cells), Value::Empty) => cells.push(0),
            (Cells::F64(cells), Value::Empty) => cells.push(0.0),
            (Cells::Bool(cells), Value::Empty) => cells.push(false),
            (Cells::Text(cells), Value::Empty) => cells.push(""),
            (_, value) => panic!("column {} cannot hold {value:?}", self.name),
        }
    }

    fn sort_key(&self) -> SortKey<'_> {
        assert!(self.is_present.is_none(), "a key is never empty: {}", self.name);
        match &self.cells {
            Cells::U64(cells) => SortKey::U64(cells),
            Cells::F64(cells) => SortKey::F64(cells),
            Cells::Bool(cells) => SortKey::Bool(cells),
            Cells::Text(texts) => SortKey::Text { cells: &texts.cells, ranks: texts.ranks() },
        }
    }
}

/// Texts of a column, each kept once.
#[derive(Debug, Default)]
pub struct Texts {
    /// Every text that occurs.
    pub entries: Vec<String>,
    /// Row by row, the number of its text in `entries`.
    pub cells: Vec<u32>,
    numbers: HashMap<String, u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        // Rows of one connection come one after another: the text before is usually this one.
        let number = match self.cells.last() {
            Some(&last) if self.entries[last as usize] == text => last,
            _ => self.number(text),
        };
        self.cells.push(number);
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = u32::try_from(self.entries.len()).expect("fewer than 2^32 different texts");
        self.entries.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// For each entry its place in the alphabet.
    fn ranks(&self) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..self.entries.len() as u32).collect();
        sorted.sort_by_key(|&number| &self.entries[number as usize]);
        let mut ranks = vec![0; sorted.len()];
        for (rank, number) in (0..).zip(sorted) {
            ranks[number as usize] = rank;
        }
        ranks
    }
}

enum SortKey<'a> {
    U64(&'a [u64]),
    F64(&'a [f64]),
    Bool(&'a [bool]),
    Text { cells: &'a [u32], ranks: Vec<u32> },
}

impl SortKey<'_> {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            SortKey::U64(cells) => cells[a].cmp(&cells[b]),
            SortKey::F64(cells) => cells[a].total_cmp(&cells[b]),
            SortKey::Bool(cells) => cells[a].cmp(&cells[b]),
            SortKey::Text { cells, ranks } => ranks[cells[a] as usize].cmp(&ranks[cells[b] as usize]),
        }
    }
}
