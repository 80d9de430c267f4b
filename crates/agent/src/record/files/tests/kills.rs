//! Tests `kill -9` before every system call that changes a name in the folder, and during writes: strace delivers the
//! signal.

use super::super::disk::Disk;
use super::merging::{at, merge_due};
use super::*;

const ROWS: u64 = 3;
/// Number of flushes before the killed process starts.
const BEFORE: u64 = 3;
/// Number of flushes of that process. The third one makes files due for a merge.
const FLUSHES: u64 = 5;

/// System calls that change what readers may see, and the number of calls between kills: a file takes many writes, and
/// is invisible to readers until it is renamed. Names differ between architectures.
const CALLS: [(&str, usize); 5] = [
    ("?open,openat", 1),
    ("write", 30),
    ("ftruncate,fsync", 1),
    ("?rename,?renameat,?renameat2", 1),
    ("?unlink,unlinkat", 1),
];

fn limits(folder: &Path) -> Settings {
    Settings { rotate: Duration::from_secs(20), ..Settings::of(folder.join("records")) }
}

fn numbers(flush: u64) -> std::ops::Range<u64> {
    ROWS * flush..ROWS * (flush + 1)
}

/// Creates the directory of an agent that was killed directly after it published the merge of the first flushes.
fn prepare(folder: &Path) {
    let settings = limits(folder);
    let mut disk = open(Disk::open, &settings);
    (0..BEFORE).for_each(|flush| disk.write(&[rows(numbers(flush))], at(flush)).unwrap());
    let content = |(_, _, path): (u64, u64, PathBuf)| (fs::read(&path).unwrap(), path);
    let parts: Vec<_> = files(&settings.folder).into_iter().map(content).collect();
    merge_due(&mut disk, at(20));
    parts.iter().for_each(|(bytes, path)| fs::write(path, bytes).unwrap());
    fs::write(settings.folder.join(".tmp-4242-0"), "PAR1").unwrap();
    fs::create_dir(folder.join("marks")).unwrap();
}

/// Flushes, merges, and creates a marker after every flush.
fn live(folder: &Path) {
    let mut disk = open(Disk::open, &limits(folder));
    for flush in BEFORE..BEFORE + FLUSHES {
        let now = at(100 + 10 * flush);
        disk.write(&[rows(numbers(flush))], now).unwrap();
        fs::create_dir(folder.join("marks").join(flush.to_string())).unwrap();
        merge_due(&mut disk, now);
    }
}

/// Checks that every flushed row exists once, and that the interrupted flush is complete or absent.
fn check(folder: &Path, when: &str) {
    let flushed = BEFORE + fs::read_dir(folder.join("marks")).unwrap().count() as u64;
    let rows = found(&folder.join("records"));
    let complete = [flushed, flushed + 1].map(|flushes| 0..ROWS * flushes);
    assert!(
        complete.into_iter().any(|complete| rows.iter().copied().eq(complete)),
        "{when}: {flushed} flushes, {rows:?}"
    );
}

#[test]
fn a_kill_at_any_point_neither_loses_nor_duplicates_flushed_rows() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return live(Path::new(&folder));
    }
    let this = "a_kill_at_any_point_neither_loses_nor_duplicates_flushed_rows";
    let tracer = ["strace", "-f", "-qq", "-o", "/dev/null"];
    let probe = Command::new(tracer[0]).args(&tracer[1..]).arg("true").output();
    if !probe.as_ref().is_ok_and(|probe| probe.status.success()) {
        return left_out("a kill before every system call", &format!("strace does not work here: {probe:?}"));
    }
    for (calls, distance) in CALLS {
        let (mut kills, mut most) = (0, 0);
        loop {
            let number = 1 + kills * distance;
            let folder = tempfile::tempdir().unwrap();
            prepare(folder.path());
            check(folder.path(), "at first");
            let trace = format!("trace={calls}");
            let inject = format!("inject={calls}:signal=KILL:when={number}");
            let before = [&tracer[..], &["-e", &trace, "-e", &inject]].concat();
            let output = again(&before, module_path!(), this, folder.path());
            let when = format!("killed before number {number} of {calls}");
            check(folder.path(), &when);
            let disk = open(Disk::open, &limits(folder.path()));
            check(folder.path(), &format!("{when}, and started again"));
            let out = folder.path().join("records");
            assert_eq!(
                fs::read_dir(&out).unwrap().count() as u64,
                disk.health().files + 1,
                "{when}: something is left"
            );
            most = most.max(fs::read_dir(folder.path().join("marks")).unwrap().count());
            if output.status.success() {
                break;
            }
            kills += 1;
        }
        assert!(kills > 0 && most as u64 == FLUSHES, "{calls}: {kills} kills, {most} flushes");
    }
}
