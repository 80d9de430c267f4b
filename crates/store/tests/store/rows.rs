//! Rows in separate files, outside of run directories.

use std::io::ErrorKind;
use std::path::Path;
use thalweg_store::{Lock, Repeats, Rows, RowsFile, StoredRows};
use thalweg_trace::{RecordRow, StateRow};

fn record(number: u64, transfer: Option<u64>) -> RecordRow {
    RecordRow { connection: number, transfer, cc: transfer.map(|_| "bbr".into()), ..RecordRow::default() }
}

fn write(path: &Path, rows: &Rows<RecordRow>) {
    let mut file = RowsFile::create(path, rows).unwrap();
    file.write(rows).unwrap();
    file.finish().unwrap().publish().unwrap();
}

fn read(path: &Path) -> std::io::Result<Rows<RecordRow>> {
    let (stored, mut rows) = (StoredRows::open(path)?, Rows::default());
    (0..stored.groups()).try_for_each(|group| stored.read(group, &mut rows))?;
    Ok(rows)
}

#[test]
fn rows_read_from_a_file_are_written_as_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let mut rows = Rows::default();
    for number in [3, 1, 2] {
        [Some(1), Some(0), None].iter().for_each(|&transfer| rows.push(&record(number, transfer)));
    }
    write(&first, &rows);
    let again = read(&first).unwrap();
    assert_eq!(again.len(), 9);
    write(&second, &again);
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
}

#[test]
fn rows_pushed_in_a_batch_are_written_like_rows_pushed_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, third] = ["first", "second", "third"].map(|name| folder.path().join(name));
    let records: Vec<RecordRow> = (0..100).map(|number| record(number, (number % 3 == 0).then_some(number))).collect();
    let (mut one_by_one, mut together) = (Rows::default(), Rows::default());
    records.iter().for_each(|record| one_by_one.push(record));
    records.chunks(7).for_each(|records| together.push_all(records));
    write(&first, &one_by_one);
    write(&second, &together);
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    // A cleared column behaves like a new one, for any number of texts.
    let others: Vec<RecordRow> =
        (0..1000).map(|number| RecordRow { cc: Some(format!("cc{number}").into()), ..record(number, None) }).collect();
    together.push_all(&others);
    together.clear();
    assert!(together.is_empty());
    together.push_all(&records);
    write(&third, &together);
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&third).unwrap());
}

#[test]
fn columns_with_repeated_values_are_written_as_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, repeated] = ["plain", "repeated"].map(|name| folder.path().join(name));
    // Columns that are empty, that have one value, that had one, and that differ; groups of different lengths.
    let group = |number: u64| {
        let mut rows = Rows::default();
        let share = (number != 2).then_some(0.5);
        let record =
            |at| RecordRow { app_limited_share: share, joined: Some(true), ..record(at, (number == 3).then_some(7)) };
        (0..if number == 4 { 50 } else { 100 }).for_each(|at| rows.push(&record(at)));
        rows
    };
    let groups: Vec<Rows<RecordRow>> = [0, 0, 0, 2, 2, 2, 3, 3, 3, 4, 0, 0].map(group).into();
    let mut file = RowsFile::create(&plain, &groups[0]).unwrap();
    groups.iter().for_each(|rows| file.write(rows).unwrap());
    file.finish().unwrap().publish().unwrap();
    let (mut file, mut repeats) = (RowsFile::create(&repeated, &groups[0]).unwrap(), Repeats::default());
    groups.iter().for_each(|rows| file.write_beside(rows, &mut repeats).unwrap());
    file.finish().unwrap().publish().unwrap();
    assert_eq!(std::fs::read(&plain).unwrap(), std::fs::read(&repeated).unwrap());
}

#[test]
fn a_copied_row_group_holds_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [parts, copy] = ["parts", "copy"].map(|name| folder.path().join(name));
    let group = |numbers: std::ops::Range<u64>| {
        let mut rows = Rows::default();
        numbers.for_each(|number| rows.push(&record(number, Some(number))));
        rows
    };
    let (first, second) = (group(0..300), group(300..1000));
    let mut file = RowsFile::create(&parts, &first).unwrap();
    [&first, &second].iter().for_each(|rows| file.write(rows).unwrap());
    file.finish().unwrap().publish().unwrap();

    let stored = StoredRows::<RecordRow>::open(&parts).unwrap();
    assert_eq!((stored.groups(), stored.rows(0), stored.rows(1)), (2, 300, 700));
    let mut file = RowsFile::create(&copy, &first).unwrap();
    for group in [1, 0] {
        stored.check(group).unwrap();
        file.copy(&stored, group).unwrap();
    }
    file.finish().unwrap().publish().unwrap();
    let mut expected = second;
    (0..300).for_each(|number| expected.push(&record(number, Some(number))));
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    write(&one, &expected);
    write(&other, &read(&copy).unwrap());
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());

    std::fs::OpenOptions::new().write(true).open(&parts).unwrap().set_len(100).unwrap();
    assert!(stored.check(1).is_err(), "nearly all of the file is gone");
}

#[test]
fn null_keys_are_sorted_first() {
    let folder = tempfile::tempdir().unwrap();
    let [shuffled, sorted] = ["shuffled", "sorted"].map(|name| folder.path().join(name));
    for (path, order) in [(&shuffled, [2, 1, 0]), (&sorted, [0, 1, 2])] {
        let mut rows = Rows::default();
        order.iter().for_each(|&which: &usize| rows.push(&record(1, [None, Some(0), Some(1)][which])));
        write(path, &rows);
    }
    assert_eq!(std::fs::read(&shuffled).unwrap(), std::fs::read(&sorted).unwrap());
}

#[test]
fn a_damaged_file_or_one_of_another_table_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut rows = Rows::default();
    (0..1000).for_each(|number| rows.push(&record(number, Some(number))));
    write(&path, &rows);
    let bytes = std::fs::read(&path).unwrap();
    for end in [0, 4, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..end]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::InvalidData, "{end} bytes");
    }
    let other = Rows::<StateRow>::default();
    RowsFile::create(&path, &other).unwrap().finish().unwrap().publish().unwrap();
    let error = read(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("`records`"), "{error}");
    assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_lock_detects_a_replaced_directory() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let lock = Lock::take(&place).unwrap();
    assert!(lock.is_of(&place));
    std::fs::rename(&place, folder.path().join("away")).unwrap();
    assert!(!lock.is_of(&place));
    std::fs::create_dir(&place).unwrap();
    let _other = Lock::take(&place).unwrap();
    assert!(!lock.is_of(&place));
}
