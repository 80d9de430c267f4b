//! Attributes of networks, such as operator and country.

use crate::prefix::{Family, Prefix};
use std::collections::BTreeMap;

/// Attributes of networks, by the columns of one or more tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    tables: Vec<Table>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Table {
    columns: Vec<String>,
    /// Indices into `known`.
    networks: BTreeMap<Prefix, u32>,
    known: Vec<Vec<String>>,
    numbers: BTreeMap<Vec<String>, u32>,
    /// Prefix lengths in descending order, of IPv4 and of IPv6.
    lengths: [Vec<u8>; 2],
}

impl Places {
    /// Adds a network with its values for these columns. For an existing network, the new values replace the old ones.
    pub fn add(&mut self, columns: &[String], network: Prefix, values: Vec<String>) {
        let table = match self.tables.iter().position(|table| table.columns == columns) {
            Some(at) => &mut self.tables[at],
            None => {
                self.tables.push(Table { columns: columns.to_vec(), ..Table::default() });
                self.tables.last_mut().expect("it was just added")
            }
        };
        table.add(network, values);
    }

    /// Returns the names of all columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().flat_map(|table| &table.columns).map(String::as_str)
    }

    /// Returns the value of a column for the longest network that contains `prefix`; `None` if it is missing or empty.
    /// If several tables have such a column, the first one is used.
    pub fn value(&self, prefix: Prefix, column: &str) -> Option<&str> {
        let named = |table: &Table| table.columns.iter().position(|name| name == column);
        let (table, at) = self.tables.iter().find_map(|table| Some((table, named(table)?)))?;
        Some(table.longest(prefix)?[at].as_str()).filter(|value| !value.is_empty())
    }
}

impl Table {
    fn add(&mut self, network: Prefix, values: Vec<String>) {
        let next = self.known.len() as u32;
        let number = *self.numbers.entry(values.clone()).or_insert(next);
        if number == next {
            self.known.push(values);
        }
        self.networks.insert(network, number);
        let lengths = &mut self.lengths[usize::from(network.family() == Family::V6)];
        if let Err(at) = lengths.binary_search_by(|length| network.length().cmp(length)) {
            lengths.insert(at, network.length());
        }
    }

    fn longest(&self, prefix: Prefix) -> Option<&[String]> {
        let lengths = &self.lengths[usize::from(prefix.family() == Family::V6)];
        let mut around = lengths.iter().filter(|&&length| length <= prefix.length());
        let number = around.find_map(|&length| self.networks.get(&prefix.cut(length)))?;
        Some(&self.known[*number as usize])
    }
}
