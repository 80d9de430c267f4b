//! Rows of a table in memory.

use crate::column::Column;
use crate::order;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::{Columns, Kind, Row, Value};

/// Rows of a table, stored column by column until they are written.
#[derive(Debug)]
pub struct Rows<R> {
    pub(crate) columns: Vec<Column>,
    /// Values of the constant columns, which follow each row's own values.
    constants: Vec<SweepValue>,
    pub(crate) count: usize,
    of: PhantomData<fn(R)>,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Rows<R> {
        Rows::with(&BTreeMap::new())
    }
}

impl<R: Row> Rows<R> {
    /// Creates an empty set of rows, with a column for each constant in addition to the table's columns.
    pub(crate) fn with(constants: &BTreeMap<String, SweepValue>) -> Rows<R> {
        let own = R::TABLE.columns.iter().map(|column| Column::new(column.name, column.kind, column.is_optional));
        let constant = constants.iter().map(|(name, value)| Column::new(name, kind(value), false));
        let columns = own.chain(constant).collect();
        Rows { columns, constants: constants.values().cloned().collect(), count: 0, of: PhantomData }
    }

    /// Excludes a column from files.
    pub(crate) fn leave_out(&mut self, name: &str) {
        for column in self.columns.iter_mut().filter(|column| column.name == name) {
            column.is_written = false;
        }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: &R) {
        let mut columns = self.columns.iter_mut();
        row.values(&mut |value| columns.next().expect("a row has as many values as its table has columns").push(value));
        columns.zip(&self.constants).for_each(|(column, constant)| column.push(value(constant)));
        self.count += 1;
    }

    /// Appends rows, column by column.
    pub fn push_all(&mut self, rows: &[R]) {
        let mut columns = Extend(self.columns.iter_mut());
        R::columns(rows, &mut columns);
        for (column, constant) in columns.0.zip(&self.constants) {
            column.extend(std::iter::repeat_n(value(constant), rows.len()));
        }
        self.count += rows.len();
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Clears the rows, but keeps their memory and some texts.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        self.count = 0;
    }

    /// Returns the indices of the rows, sorted by their keys.
    pub(crate) fn order(&self) -> Vec<u32> {
        let columns = std::iter::zip(R::TABLE.columns, &self.columns);
        order::by_keys(columns.filter(|(declared, _)| declared.is_key).map(|(_, column)| column), self.count)
    }
}

struct Extend<'a>(std::slice::IterMut<'a, Column>);

impl Columns for Extend<'_> {
    #[inline]
    fn column<'a>(&mut self, values: impl ExactSizeIterator<Item = Value<'a>> + Clone) {
        self.0.next().expect("rows have as many columns as their table").extend(values);
    }
}

fn value(constant: &SweepValue) -> Value<'_> {
    match constant {
        SweepValue::Bool(value) => Value::Bool(*value),
        SweepValue::Number(value) => Value::F64(*value),
        SweepValue::Text(value) => Value::Text(value),
    }
}

fn kind(value: &SweepValue) -> Kind {
    match value {
        SweepValue::Bool(_) => Kind::Bool,
        SweepValue::Number(_) => Kind::F64,
        SweepValue::Text(_) => Kind::Text,
    }
}
