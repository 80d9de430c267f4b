use super::super::disk::Disk;
use super::super::waiting::{MAX_ROWS, Waiting};
use super::*;
use std::time::SystemTime;

#[test]
fn rows_are_buffered_while_the_directory_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (out, moved) = (folder.path().join("records"), folder.path().join("away"));
    let mut writer = Writer::open(settings(&out)).unwrap();
    take(&mut writer, 0..3);
    fs::rename(&out, &moved).unwrap();
    (3..6).for_each(|number| writer.take(row(number)));
    flush(&mut writer);
    wait_until("it is noticed", &writer, |health| health.trouble.is_some());
    let health = writer.health();
    assert!(health.trouble.unwrap().contains("No such file"), "what is wrong is said");
    assert_eq!((health.rows_waiting, health.rows_written, health.rows_lost), (3, 3, 0));
    assert!(!out.exists(), "it may be a disk that is not mounted");

    fs::rename(&moved, &out).unwrap();
    flush(&mut writer);
    wait_until("all is well", &writer, |health| health.trouble.is_none());
    assert_eq!(found(&out), [0, 1, 2, 3, 4, 5]);
    writer.finish().unwrap();
}

#[test]
fn the_oldest_rows_are_dropped_when_the_buffer_is_full() {
    let waiting = Waiting::default();
    let chunk = MAX_ROWS as u64 / 4;
    (0..6).for_each(|number| waiting.add(rows(number * chunk..number * chunk + chunk)));
    assert_eq!((waiting.health().rows_waiting, waiting.health().rows_lost), (4 * chunk, 2 * chunk));
    let (handed, is_last) = waiting.wait();
    assert!(!is_last && handed.len() == 4);
    // Rows that were returned by the writer are the oldest again.
    waiting.add(rows(6 * chunk..7 * chunk));
    waiting.give_back(handed);
    assert_eq!((waiting.health().rows_waiting, waiting.health().rows_lost), (4 * chunk, 3 * chunk));
    let folder = tempfile::tempdir().unwrap();
    let (handed, _) = waiting.wait();
    Disk::open(settings(folder.path())).unwrap().write(&handed, SystemTime::now()).unwrap();
    assert!(found(folder.path()).into_iter().eq(3 * chunk..7 * chunk));
}

#[test]
fn the_buffer_is_crowded_until_written_unless_a_retry_is_pending() {
    let waiting = Waiting::default();
    let group = MAX_ROWS as u64 / 8;
    waiting.add(rows(0..group));
    assert!(!waiting.is_crowded());
    waiting.add(rows(group..2 * group));
    assert!(waiting.is_crowded());
    // Rows handed to the writer occupy memory as well.
    let (handed, _) = waiting.wait();
    assert!(waiting.is_crowded());
    waiting.written(Vec::new());
    assert!(!waiting.is_crowded());
    waiting.give_back(handed);
    assert!(waiting.is_crowded());
    waiting.trouble(Some("the disk is full".to_owned()));
    assert!(!waiting.is_crowded(), "it would be for long");
}

#[test]
fn dropped_rows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (out, moved) = (folder.path().join("records"), folder.path().join("away"));
    let mut writer = Writer::open(settings(&out)).unwrap();
    fs::rename(&out, &moved).unwrap();
    let many = MAX_ROWS as u64 + 20_000;
    (0..many).for_each(|number| writer.take(row(number)));
    flush(&mut writer);
    wait_until("it is noticed", &writer, |health| health.rows_waiting <= MAX_ROWS as u64 && health.trouble.is_some());
    wait_until("all is in its place", &writer, |health| health.rows_waiting + health.rows_lost == many);
    let lost = writer.health().rows_lost;
    assert!(lost >= 20_000, "{lost}");

    fs::rename(&moved, &out).unwrap();
    flush(&mut writer);
    wait_until("all is well", &writer, |health| health.trouble.is_none() && health.rows_waiting == 0);
    let rows = found(&out);
    assert_eq!((rows.len() as u64, rows.last().copied()), (many - lost, Some(many - 1)));
    assert_eq!(writer.health().rows_lost, lost, "what was lost stays known");
    writer.finish().unwrap();
}

#[test]
fn a_recreated_directory_is_locked_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records");
    let mut writer = Writer::open(settings(&out)).unwrap();
    fs::remove_dir_all(&out).unwrap();
    fs::create_dir(&out).unwrap();
    take(&mut writer, 0..3);
    assert_eq!(found(&out), [0, 1, 2]);
    assert_eq!(Writer::open(settings(&out)).unwrap_err().code, "busy");
    writer.finish().unwrap();
}

#[test]
fn a_recreated_directory_locked_by_another_agent_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records");
    let mut writer = Writer::open(settings(&out)).unwrap();
    fs::remove_dir_all(&out).unwrap();
    let other = Writer::open(settings(&out)).unwrap();
    flush(&mut writer);
    wait_until("it is noticed", &writer, |health| health.trouble.is_some());
    (0..3).for_each(|number| writer.take(row(number)));
    flush(&mut writer);
    assert!(writer.health().trouble.unwrap().contains("now writes to this folder"), "{:?}", writer.health());
    let problem = writer.finish().unwrap_err();
    assert!(problem.found.starts_with("3 rows"), "{problem}");
    other.finish().unwrap();
    assert!(files(&out).is_empty());
}
