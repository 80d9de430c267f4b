//! Contents of the Parquet files.

use crate::common::{commit_recorded, flow, plan, queue, run_of, some_rows, state, sweep};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::fs::File;
use std::path::Path;
use thalweg_store::RunDirectory;
use thalweg_trace::{Sink, StateRow, TABLES};

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn field(row: &Row, name: &str) -> Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

/// Writes rows as the only experiment of a new run directory, and returns those of `table` and the bytes of its file.
fn written(write: impl FnOnce(&mut dyn Sink), table: &str) -> (tempfile::TempDir, Vec<Row>, Vec<u8>) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap();
    let id = directory.run().experiments[0].id.clone();
    commit_recorded(&directory, &id, b"", write).unwrap();
    let path = temporary.path().join(table).join(format!("{id}.parquet"));
    let bytes = std::fs::read(&path).unwrap();
    (temporary, rows(&path), bytes)
}

#[test]
fn every_table_has_its_declared_columns_and_flows_also_the_sweep_columns() {
    for table in TABLES {
        let (_directory, rows, _) = written(some_rows, table.name);
        let names: Vec<&String> = rows[0].get_column_iter().map(|(name, _)| name).collect();
        let mut expected: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        if table.name == "flows" {
            expected.extend(["engine.offloads", "path.buffer", "path.loss"]);
        }
        assert_eq!(names, expected);
    }
}

#[test]
fn a_flows_file_has_a_direction_column_only_if_there_is_an_upload() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap();
    let id = directory.run().experiments[0].id.clone();
    let mut tables = directory.begin(&id, &sweep(), &["direction"]).unwrap();
    tables.flow(flow("large", 0, Some(10)));
    tables.commit().unwrap();
    let row = &rows(&temporary.path().join("flows").join(format!("{id}.parquet")))[0];
    assert!(row.get_column_iter().all(|(name, _)| name != "direction"));
    assert_eq!(
        (field(row, "host"), field(row, "size_bytes")),
        (Field::Str("sender".to_owned()), Field::ULong(u64::MAX))
    );
    let up = thalweg_trace::FlowRow { direction: Some("up"), ..flow("large", 0, Some(10)) };
    let (_directory, rows, _) = written(|sink| sink.flow(up), "flows");
    assert_eq!(field(&rows[0], "direction"), Field::Str("up".to_owned()));
}

#[test]
fn values_are_read_back_as_written() {
    let (_directory, rows, _) = written(|sink| sink.flow(flow("large", 0, None)), "flows");
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
fn null_values_stay_in_their_rows() {
    let values = [(3, Some(33)), (1, None), (2, Some(22)), (0, None)];
    let (_directory, rows, _) = written(
        |sink| values.iter().for_each(|(connection, fct)| sink.flow(flow("large", *connection, *fct))),
        "flows",
    );
    let fcts: Vec<Field> = rows.iter().map(|row| field(row, "fct_us")).collect();
    assert_eq!(fcts, [Field::Null, Field::Null, Field::ULong(22), Field::ULong(33)]);
}

#[test]
fn strings_are_read_back_in_any_order_of_occurrence() {
    let names = ["mode", "gain", "loss", "k_s"];
    // Alternating, then each twice, then without a pattern.
    let order = [0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 1, 2, 2, 3, 3, 2, 0, 3, 1, 0, 2, 0, 1, 3];
    let (_directory, rows, _) =
        written(|sink| (0..).zip(order).for_each(|(t_us, number)| sink.state(state(0, t_us, names[number]))), "state");
    let keys: Vec<Field> = rows.iter().map(|row| field(row, "key")).collect();
    assert_eq!(keys, order.map(|number| Field::Str(names[number].to_owned())));
}

#[test]
fn long_runs_of_equal_strings_are_read_back_with_their_boundaries() {
    // Runs of one row and of hundreds; one text, as many as one byte can index, and more; short and long texts.
    for (texts, length) in [(1, 3), (256, 3), (300, 3), (2, 90)] {
        let name = |number: usize| format!("{number:0length$}");
        let rows_of = |number: usize| if number % 9 == 0 { 1 } else { 20 + number };
        let all = || (0..texts).flat_map(|number| std::iter::repeat_n(number, rows_of(number)));
        let row = |(t_us, number)| StateRow { flow: name(number).as_str().into(), ..state(0, t_us, "mode") };
        let (_directory, rows, bytes) =
            written(|sink| (0..).zip(all()).for_each(|(t_us, number)| sink.state(row((t_us, number)))), "state");
        let flows: Vec<Field> = rows.iter().map(|row| field(row, "flow")).collect();
        assert_eq!(flows, all().map(|number| Field::Str(name(number))).collect::<Vec<_>>(), "{texts} texts");
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        let column = columns.iter().find(|column| column.column_path().string() == "flow").unwrap();
        let ends = column.statistics().unwrap();
        let (least, greatest) = (name(0), name(texts - 1));
        assert!(least.as_bytes().starts_with(ends.min_bytes_opt().unwrap()), "{texts} texts");
        if length <= 64 {
            assert_eq!(ends.max_bytes_opt(), Some(greatest.as_bytes()), "{texts} texts");
        }
    }
}

#[test]
fn the_arrival_order_of_rows_does_not_change_the_bytes_of_a_row_group() {
    let write = |order: &[(&str, u64)]| {
        written(|sink| order.iter().for_each(|(name, connection)| sink.flow(flow(name, *connection, Some(1)))), "flows")
    };
    let (_a, rows, first) = write(&[("medium", 1), ("large", 10), ("medium", 0), ("large", 9)]);
    let (_b, _, other) = write(&[("large", 9), ("large", 10), ("medium", 0), ("medium", 1)]);
    assert!(first == other);
    let (_c, _, third) = write(&[("large", 9), ("large", 10), ("medium", 0), ("medium", 2)]);
    assert!(first != third, "another row must give other bytes");
    let keys: Vec<(Field, Field)> = rows.iter().map(|row| (field(row, "flow"), field(row, "connection"))).collect();
    let key = |name: &str, connection| (Field::Str(name.to_owned()), Field::ULong(connection));
    assert_eq!(keys, [key("large", 9), key("large", 10), key("medium", 0), key("medium", 1)]);
}

#[test]
fn tables_longer_than_a_row_group_are_complete_and_every_group_is_sorted() {
    const ROWS: u64 = 300_000;
    const GROUP: usize = 131_072;
    let (_directory, rows, _) = written(|sink| (0..ROWS).rev().for_each(|t_us| sink.queue(queue(t_us))), "queue");
    let t_us = |row: &Row| match field(row, "t_us") {
        Field::ULong(t_us) => t_us,
        other => panic!("a time must be an integer, not {other}"),
    };
    assert!(rows.chunks(GROUP).all(|group| group.is_sorted_by_key(t_us)));
    assert!(rows.iter().all(|row| field(row, "sent_bytes") == Field::ULong(t_us(row) * 1500)));
    let mut times: Vec<u64> = rows.iter().map(t_us).collect();
    times.sort_unstable();
    assert!(times.into_iter().eq(0..ROWS));
}

#[test]
fn keys_of_any_size_sort_a_row_group() {
    let times = [u64::MAX, 5, u64::MAX - 1, 1 << 40, 0, 2047, 2048, 5];
    let names = ["round", "bw_bps", "mode"];
    let rows = times.iter().flat_map(|t_us| names.map(|name| (*t_us, name)));
    let mut expected: Vec<(u64, &str)> = rows.clone().collect();
    expected.sort_unstable();
    let (_directory, rows_written, _) =
        written(|sink| rows.for_each(|(t_us, name)| sink.state(state(0, t_us, name))), "state");
    let rows_written: Vec<(Field, Field)> =
        rows_written.iter().map(|row| (field(row, "t_us"), field(row, "key"))).collect();
    let expected: Vec<(Field, Field)> =
        expected.into_iter().map(|(t_us, name)| (Field::ULong(t_us), Field::Str(name.to_owned()))).collect();
    assert_eq!(rows_written, expected);
}

#[test]
fn rows_in_memory_are_bounded_during_an_experiment() {
    const BOUND: usize = 131_072;
    let temporary = tempfile::tempdir().unwrap();
    let directory = RunDirectory::open(temporary.path(), run_of(plan(1))).unwrap();
    let mut tables = directory.begin(&directory.run().experiments[0].id, &sweep(), &["direction"]).unwrap();
    let mut most = 0;
    for t_us in 0..500_000 {
        tables.state(state(0, t_us, "pacing_gain"));
        most = most.max(tables.rows_in_memory());
    }
    assert!((1..BOUND).contains(&most), "{most} rows in memory");
    (0..200_000).for_each(|connection| tables.flow(flow("large", connection, None)));
    assert!(tables.rows_in_memory() < 2 * BOUND, "each table must write its own");
}

#[test]
fn a_table_without_rows_is_written_with_its_columns() {
    let (directory, rows, _) = written(|_| {}, "state");
    assert!(rows.is_empty());
    let file = std::fs::read_dir(directory.path().join("state")).unwrap().next().unwrap().unwrap().path();
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), 8);
}
