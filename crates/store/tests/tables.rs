//! What readers find in the Parquet files.

mod common;

use common::{flow, plan, queue, run_of, some_tables, sweep};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::fs::File;
use std::path::Path;
use thalweg_store::{RunDirectory, Tables};
use thalweg_trace::{Sink, TABLES};

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn field(row: &Row, name: &str) -> Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

/// Writes `tables` as the only experiment of a new run directory, and returns the bytes of `table`.
fn written(tables: Tables, table: &str) -> (tempfile::TempDir, Vec<Row>, Vec<u8>) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap();
    let id = directory.run().experiments[0].id.clone();
    directory.commit(&id, tables, &sweep()).unwrap();
    let path = temporary.path().join(table).join(format!("{id}.parquet"));
    let bytes = std::fs::read(&path).unwrap();
    (temporary, rows(&path), bytes)
}

#[test]
fn every_table_has_its_declared_columns_and_flows_those_of_the_sweep_too() {
    for table in TABLES {
        let (_directory, rows, _) = written(some_tables(), table.name);
        let found: Vec<&String> = rows[0].get_column_iter().map(|(name, _)| name).collect();
        let mut expected: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        if table.name == "flows" {
            expected.extend(["engine.offloads", "path.buffer", "path.loss"]);
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn values_come_back_as_they_were_written() {
    let mut tables = Tables::new();
    tables.flow(flow("large", 0, None));
    let (_directory, rows, _) = written(tables, "flows");
    let row = &rows[0];
    assert_eq!(field(row, "flow"), Field::Str("large".to_owned()));
    assert_eq!(field(row, "size_bytes"), Field::ULong(u64::MAX));
    assert_eq!(field(row, "goodput_bps"), Field::Double(0.5));
    assert_eq!(field(row, "completed"), Field::Bool(false));
    assert_eq!(field(row, "fct_us"), Field::Null);
    assert_eq!(field(row, "path.buffer"), Field::Str("1bdp".to_owned()));
    assert_eq!(field(row, "path.loss"), Field::Double(0.01));
    assert_eq!(field(row, "engine.offloads"), Field::Bool(true));
}

#[test]
fn empty_values_stay_with_their_rows() {
    let mut tables = Tables::new();
    for (connection, fct) in [(3, Some(33)), (1, None), (2, Some(22)), (0, None)] {
        tables.flow(flow("large", connection, fct));
    }
    let (_directory, rows, _) = written(tables, "flows");
    let fcts: Vec<Field> = rows.iter().map(|row| field(row, "fct_us")).collect();
    assert_eq!(fcts, [Field::Null, Field::Null, Field::ULong(22), Field::ULong(33)]);
}

#[test]
fn the_order_in_which_rows_arrive_does_not_change_a_byte() {
    let write = |order: &[(&str, u64)]| {
        let mut tables = Tables::new();
        order.iter().for_each(|(name, connection)| tables.flow(flow(name, *connection, Some(1))));
        written(tables, "flows")
    };
    let (_a, rows, one) = write(&[("medium", 1), ("large", 10), ("medium", 0), ("large", 9)]);
    let (_b, _, other) = write(&[("large", 9), ("large", 10), ("medium", 0), ("medium", 1)]);
    assert!(one == other);
    let (_c, _, third) = write(&[("large", 9), ("large", 10), ("medium", 0), ("medium", 2)]);
    assert!(one != third, "another row must give other bytes");
    let keys: Vec<(Field, Field)> = rows.iter().map(|row| (field(row, "flow"), field(row, "connection"))).collect();
    let key = |name: &str, connection| (Field::Str(name.to_owned()), Field::ULong(connection));
    assert_eq!(keys, [key("large", 9), key("large", 10), key("medium", 0), key("medium", 1)]);
}

#[test]
fn tables_longer_than_a_row_group_are_whole_and_sorted() {
    const ROWS: u64 = 200_000;
    let mut tables = Tables::new();
    (0..ROWS).rev().for_each(|t_us| tables.queue(queue(t_us)));
    let (_directory, rows, _) = written(tables, "queue");
    assert_eq!(rows.len() as u64, ROWS);
    for (t_us, row) in (0..).zip(&rows) {
        assert_eq!((field(row, "t_us"), field(row, "sent_bytes")), (Field::ULong(t_us), Field::ULong(t_us * 1500)));
    }
}

#[test]
fn a_table_without_rows_is_a_file_with_columns() {
    let (directory, rows, _) = written(Tables::new(), "state");
    assert!(rows.is_empty());
    let file = std::fs::read_dir(directory.path().join("state")).unwrap().next().unwrap().unwrap().path();
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), 8);
}
