use super::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn rows_appear_in_a_complete_file_only_after_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/records");
    let mut writer = open(Writer::open, &settings(&out));
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o7777, 0o750);
    (0..3).for_each(|number| writer.take(row(number)));
    writer.tick(Instant::now());
    assert_eq!((found(&out).len(), writer.health().rows_waiting), (0, 3));
    flush(&mut writer);
    wait_until("rows are written", &writer, |health| health.rows_written == 3);
    assert_eq!(found(&out), [0, 1, 2]);
    for (number, stored) in stored(&out).iter().enumerate() {
        assert!(is_stored_as(&row(number as u64), stored), "{stored}");
    }
    flush(&mut writer);
    writer.finish().unwrap();
    assert_eq!(files(&out).len(), 1, "a flush without rows makes no file");
}

#[test]
fn the_last_rows_are_written_at_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(Writer::open, &settings(folder.path()));
    (0..3).for_each(|number| writer.take(row(number)));
    writer.finish().unwrap();
    assert_eq!(found(folder.path()), [0, 1, 2]);
}

#[test]
fn many_rows_trigger_an_early_flush() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(Writer::open, &settings(folder.path()));
    (0..20_000).for_each(|number| writer.take(row(number)));
    wait_until("rows are written", &writer, |health| health.rows_written >= 16_384);
    writer.finish().unwrap();
    assert!(found(folder.path()).into_iter().eq(0..20_000));
}

#[test]
fn flushed_files_are_merged_while_recording_continues() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(Writer::open, &settings(folder.path()));
    take(&mut writer, 0..10);
    let bytes = writer.health().bytes;
    writer.finish().unwrap();
    let limits = Settings { rotate_bytes: 3 * bytes, ..settings(folder.path()) };
    let mut writer = open(Writer::open, &limits);
    (1..20).for_each(|flush| take(&mut writer, 10 * flush..10 * flush + 10));
    // Files that become due during a merge are merged at the next flush.
    let deadline = Instant::now() + PATIENCE;
    while writer.health().files >= 10 {
        assert!(Instant::now() < deadline, "waited too long until files are merged: {:?}", writer.health());
        flush(&mut writer);
        std::thread::sleep(Duration::from_millis(5));
    }
    writer.finish().unwrap();
    assert!(found(folder.path()).into_iter().eq(0..200));
    assert!(files(folder.path()).len() < 10, "{:?}", files(folder.path()));
}

#[test]
fn the_oldest_files_are_deleted_before_the_size_limit_is_exceeded() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(Writer::open, &settings(folder.path()));
    take(&mut writer, 0..10);
    let bytes = writer.health().bytes;
    writer.finish().unwrap();
    let max_bytes = 6 * bytes;
    let limits = Settings { rotate_bytes: 2 * bytes, max_bytes, ..settings(folder.path()) };
    let mut writer = open(Writer::open, &limits);
    for flush in 1..60 {
        take(&mut writer, 10 * flush..10 * flush + 10);
        let rows = found(folder.path());
        let end = 10 * flush + 10;
        assert!(rows.iter().copied().eq(end - rows.len() as u64..end), "the newest are there: {rows:?}");
        assert!(writer.health().bytes <= max_bytes, "{:?}", writer.health());
    }
    assert!(writer.health().files_removed > 0);
    writer.finish().unwrap();
    let size: u64 = files(folder.path()).iter().map(|file| fs::metadata(&file.2).unwrap().len()).sum();
    assert!(size <= max_bytes, "{size}");
}

#[test]
fn a_second_agent_reports_the_process_that_holds_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = open(Writer::open, &settings(folder.path()));
    let problem = Writer::open(settings(folder.path())).unwrap_err();
    assert_eq!(problem.code, "busy");
    assert!(problem.found.contains(&format!("process {}", std::process::id())), "{problem}");
    take(&mut first, 0..3);
    first.finish().unwrap();
    open(Writer::open, &settings(folder.path()));
}
