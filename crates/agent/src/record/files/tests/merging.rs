use super::super::disk::Disk;
use super::super::folder::{Listed, Listing, Name};
use super::super::merge::{Failure, merge};
use super::super::rotation::Rule;
use super::*;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

const RULE: Rule = Rule { rotate: Duration::from_secs(60), rotate_bytes: 100 };

pub fn at(s: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_769_860_800 + s)
}

pub fn merge_due(disk: &mut Disk, now: SystemTime) {
    let folder = disk.folder().to_owned();
    for parts in disk.due(now).expect("it can be listed") {
        let outcome = merge(&folder, &parts, &mut || true);
        disk.merged(&parts, outcome).expect("it is merged");
    }
}

fn single(at_s: u64, bytes: u64) -> Listed {
    Listed { name: Name { first: at_s, last: at_s, at_s }, bytes }
}

fn due(files: &[Listed], now_s: u64) -> Vec<Vec<u64>> {
    let groups = RULE.due(files, &BTreeSet::new(), now_s);
    groups.iter().map(|group| group.iter().map(|name| name.first).collect()).collect()
}

#[test]
fn files_are_merged_after_the_merge_interval() {
    let files = [single(100, 1), single(110, 1), single(159, 1), single(160, 1), single(170, 1)];
    assert_eq!(due(&files[..3], 159), [[0; 0]; 0]);
    assert_eq!(due(&files[..3], 160), [[100, 110, 159]]);
    // The next flush opens the next file.
    assert_eq!(due(&files, 170), [[100, 110, 159]]);
    assert_eq!(due(&files, 220), [vec![100, 110, 159], vec![160, 170]]);
}

#[test]
fn files_are_merged_earlier_when_their_total_size_is_large() {
    let files = [single(100, 50), single(101, 49), single(102, 1), single(103, 100), single(104, 1)];
    assert_eq!(due(&files, 105), [[100, 101, 102]]);
    assert_eq!(due(&files[..2], 105), [[0; 0]; 0]);
}

#[test]
fn a_single_file_is_not_rewritten_by_merging() {
    assert_eq!(due(&[single(100, 1), single(200, 1)], 1000), [[0; 0]; 0]);
}

#[test]
fn the_number_range_of_a_merged_file_never_spans_another_file() {
    let merged = Listed { name: Name { first: 102, last: 103, at_s: 102 }, bytes: 1 };
    let files = [single(100, 1), single(101, 1), merged, single(104, 1), single(105, 1)];
    assert_eq!(due(&files, 1000), [[100, 101], [104, 105]]);
    let aside = BTreeSet::from([files[1].name]);
    let groups = RULE.due(&files, &aside, 1000);
    assert_eq!(groups, [[files[3].name, files[4].name]]);
}

#[test]
fn files_are_merged_after_the_clock_was_set_back() {
    assert_eq!(due(&[single(5000, 1), single(5010, 1)], 100), [[5000, 5010]]);
}

#[test]
fn merged_files_preserve_every_row_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    // The result and some inputs have several row groups.
    let chunks: [Rows; 4] = [rows(0..5000), rows(5000..9000), rows(9000..9001), rows(9001..20_000)];
    disk.write(&chunks[..2], at(0)).unwrap();
    disk.write(&chunks[2..3], at(1)).unwrap();
    disk.write(&chunks[3..], at(2)).unwrap();
    merge_due(&mut disk, at(3599));
    assert_eq!(files(folder.path()).len(), 3);
    merge_due(&mut disk, at(3600));
    let [(first, last, path)] = &files(folder.path())[..] else { panic!("{:?}", files(folder.path())) };
    assert_eq!((*first, *last), (1_769_860_800, 1_769_860_802));
    assert!(path.ends_with("20260131T120000Z-1769860800-1769860802.parquet"), "{path:?}");
    let stored = stored(folder.path());
    assert_eq!(stored.len(), 20_000);
    for (number, stored) in stored.iter().enumerate() {
        assert!(is_stored_as(&row(number as u64), stored), "{stored}");
    }
    assert_eq!((disk.health().files, disk.health().files_merged), (1, 3));
    assert_eq!(disk.health().bytes, fs::metadata(path).unwrap().len());
}

#[test]
fn transfers_keep_separate_row_groups_after_a_merge() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(Writer::open, &settings(folder.path()));
    let transfer = |number| RecordRow { kind: "transfer", transfer: Some(0), ..row(number) };
    for flushed in 0..3 {
        for number in 10 * flushed..10 * flushed + 10 {
            writer.take(transfer(number));
            writer.take(row(number));
        }
        flush(&mut writer);
        wait_until("rows are written", &writer, |health| health.rows_written == 20 * (flushed + 1));
    }
    writer.finish().unwrap();
    let kinds = || -> Vec<Vec<String>> {
        let all = stored(folder.path());
        let kind = |stored: &Stored| field(stored, "kind").to_string();
        all.chunk_by(|one, next| kind(one) == kind(next)).map(|group| vec![kind(&group[0]); group.len()]).collect()
    };
    let lengths = || kinds().iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths(), [10; 6]);
    let mut disk = open(Disk::open, &settings(folder.path()));
    let all: Vec<Name> = Listing::of(folder.path()).unwrap().files.iter().map(|file| file.name).collect();
    let outcome = merge(folder.path(), &all, &mut || true);
    disk.merged(&all, outcome).unwrap();
    assert_eq!((files(folder.path()).len(), lengths()), (1, vec![30; 2]));
}

#[test]
fn a_transfer_and_its_connection_that_end_together_are_sorted_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    let transfer = |number| RecordRow { kind: "transfer", transfer: Some(number), ..row(7) };
    let expected = [row(7), transfer(0), transfer(1), row(8)];
    let mut rows = Rows::default();
    [3, 2, 1, 0].iter().for_each(|&number: &usize| rows.push(&expected[number]));
    disk.write(&[rows], at(0)).unwrap();
    for (expected, stored) in std::iter::zip(&expected, stored(folder.path())) {
        assert!(is_stored_as(expected, &stored), "{stored}");
    }
}

#[test]
fn files_from_before_a_restart_are_merged_with_those_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    disk.write(&[rows(0..3)], at(0)).unwrap();
    drop(disk);
    let mut disk = open(Disk::open, &settings(folder.path()));
    disk.write(&[rows(3..6)], at(5)).unwrap();
    merge_due(&mut disk, at(3600));
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(found(folder.path()), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn an_abandoned_merge_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    disk.write(&[rows(0..3)], at(0)).unwrap();
    disk.write(&[rows(3..6)], at(1)).unwrap();
    let parts: Vec<Name> = disk.due(at(9000)).unwrap().remove(0);
    let outcome = merge(folder.path(), &parts, &mut || false);
    assert!(matches!(outcome, Err(Failure::GivenUp)), "{outcome:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "the parts and the lock");
    assert_eq!(found(folder.path()), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn flush_numbers_increase_even_if_the_clock_is_set_back_or_the_directory_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    disk.write(&[rows(0..1)], at(100)).unwrap();
    disk.write(&[rows(1..2)], at(100)).unwrap();
    disk.write(&[rows(2..3)], at(0)).unwrap();
    let numbers: Vec<u64> = files(folder.path()).iter().map(|file| file.0 - 1_769_860_800).collect();
    assert_eq!(numbers, [100, 101, 102]);
    drop(disk);
    files(folder.path()).iter().for_each(|file| fs::remove_file(&file.2).unwrap());
    let mut disk = open(Disk::open, &settings(folder.path()));
    disk.write(&[rows(3..4)], at(103)).unwrap();
    assert_eq!(files(folder.path())[0].0 - 1_769_860_800, 103);
}
