//! Rows in files of their own, outside of run directories.

use std::io::ErrorKind;
use std::path::Path;
use thalweg_store::{Lock, Rows, RowsFile, StoredRows};
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
fn rows_that_were_read_are_written_as_the_same_bytes() {
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
fn a_key_that_is_empty_is_sorted_before_all_others() {
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
fn a_file_that_is_damaged_or_of_another_table_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut rows = Rows::default();
    (0..1000).for_each(|number| rows.push(&record(number, Some(number))));
    write(&path, &rows);
    let whole = std::fs::read(&path).unwrap();
    for end in [0, 4, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).unwrap();
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
fn a_lock_knows_whether_its_folder_is_still_the_same() {
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
