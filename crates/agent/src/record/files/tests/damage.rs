use super::super::disk::Disk;
use super::super::folder::Name;
use super::super::merge::{Failure, merge};
use super::merging::{at, merge_due};
use super::*;

#[test]
fn the_next_start_removes_only_leftovers_of_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    (0..3).for_each(|flush| disk.write(&[rows(flush..flush + 1)], at(flush)).unwrap());
    let part = files(folder.path())[1].2.clone();
    let kept = fs::read(&part).unwrap();
    merge_due(&mut disk, at(9000));
    drop(disk);
    let alien = [".tmp-upload", "notes.parquet", "20260131.parquet"].map(|name| folder.path().join(name));
    alien.iter().for_each(|path| fs::write(path, "mine").unwrap());
    fs::write(&part, kept).unwrap();
    fs::write(folder.path().join(".tmp-4242-0"), "PAR1").unwrap();

    let disk = open(Disk::open, &settings(folder.path()));
    assert!(!part.exists() && !folder.path().join(".tmp-4242-0").exists());
    assert!(alien.iter().all(|path| path.exists()));
    assert_eq!((found(folder.path()), disk.health().files), (vec![0, 1, 2], 1));
}

#[test]
fn an_unreadable_file_is_kept_and_the_others_are_merged_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    (0..5).for_each(|flush| disk.write(&[rows(flush..flush + 1)], at(flush)).unwrap());
    let damaged = files(folder.path())[2].2.clone();
    fs::write(&damaged, "PAR1 and then nothing").unwrap();

    let parts: Vec<Name> = disk.due(at(9000)).unwrap().remove(0);
    let outcome = merge(folder.path(), &parts, &mut || true);
    assert!(matches!(&outcome, Err(Failure::Unreadable(name, _)) if damaged.ends_with(name.text())), "{outcome:?}");
    disk.merged(&parts, outcome).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "the parts and the lock");

    merge_due(&mut disk, at(9000));
    let flushes: Vec<_> = files(folder.path()).iter().map(|file| file.1 - file.0).collect();
    assert_eq!(flushes, [1, 0, 1]);
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "PAR1 and then nothing");
    fs::remove_file(damaged).unwrap();
    assert_eq!(found(folder.path()), [0, 1, 3, 4]);
    assert_eq!(disk.due(at(9000)), Ok(Vec::new()));
}

#[test]
fn files_removed_during_a_merge_do_not_fail_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(Disk::open, &settings(folder.path()));
    (0..3).for_each(|flush| disk.write(&[rows(flush..flush + 1)], at(flush)).unwrap());
    let parts: Vec<Name> = disk.due(at(9000)).unwrap().remove(0);
    fs::remove_file(folder.path().join(parts[1].text())).unwrap();
    merge(folder.path(), &parts, &mut || true).unwrap();
    assert_eq!(found(folder.path()), [0, 2]);
    files(folder.path()).iter().for_each(|file| fs::remove_file(&file.2).unwrap());
    merge(folder.path(), &parts, &mut || true).unwrap();
    assert!(files(folder.path()).is_empty());
}
