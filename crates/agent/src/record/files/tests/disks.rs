//! Tests with full disks: small file systems in a separate mount namespace.

use super::*;
use std::io::Write;

/// Runs the test again on an empty disk of one megabyte.
fn on_a_small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=1m tmpfs \"$0\" 2>/dev/null || exit 77; exec \"$@\"";
    let disk = folder.path().to_str().unwrap();
    for namespaces in ["-m", "-Urm"] {
        let output = again(&["unshare", namespaces, "sh", "-c", script, disk], module_path!(), test, folder.path());
        let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).join("");
        if output.status.success() {
            assert!(text.contains("1 passed"), "{text}");
            return;
        }
        // If unshare itself failed, standard output is empty; a failed test prints its reason there.
        assert!(output.status.code() == Some(77) || output.stdout.is_empty(), "{text}");
    }
    left_out("a full disk", "this system forbids to mount a tmpfs in a namespace of one's own (unshare -Urm)");
}

fn fill(path: &Path) {
    let mut ballast = File::options().append(true).create(true).open(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn rows_are_buffered_while_the_disk_is_full_and_all_written_afterwards() {
    let Some(disk) = std::env::var_os(FOLDER) else {
        return on_a_small_disk("rows_are_buffered_while_the_disk_is_full_and_all_written_afterwards");
    };
    let (ballast, out) = (Path::new(&disk).join("ballast"), Path::new(&disk).join("records"));
    let mut writer = open(Writer::open, &settings(&out));
    take(&mut writer, 0..10);
    fill(&ballast);
    (10..20).for_each(|number| writer.take(row(number)));
    flush(&mut writer);
    wait_until("it is noticed", &writer, |health| health.trouble.is_some());
    let health = writer.health();
    assert!(health.trouble.as_ref().unwrap().contains("No space left"), "{health:?}");
    assert_eq!((health.rows_waiting, health.rows_written), (10, 10));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "one file, and the lock");

    fs::remove_file(&ballast).unwrap();
    flush(&mut writer);
    wait_until("all is well", &writer, |health| health.trouble.is_none());
    assert!(found(&out).into_iter().eq(0..20));

    fill(&ballast);
    (20..25).for_each(|number| writer.take(row(number)));
    let problem = writer.finish().unwrap_err();
    assert_eq!(problem.code, "rows-lost");
    assert!(problem.found.starts_with("5 rows") && problem.found.contains("No space left"), "{problem}");
    assert!(found(&out).into_iter().eq(0..20));
}

#[test]
fn files_that_cannot_be_merged_for_lack_of_disk_space_are_unchanged() {
    let Some(disk) = std::env::var_os(FOLDER) else {
        return on_a_small_disk("files_that_cannot_be_merged_for_lack_of_disk_space_are_unchanged");
    };
    let (ballast, out) = (Path::new(&disk).join("ballast"), Path::new(&disk).join("records"));
    let mut writer = open(Writer::open, &settings(&out));
    (0..4).for_each(|flush| take(&mut writer, 10 * flush..10 * flush + 10));
    let bytes = writer.health().bytes;
    writer.finish().unwrap();
    fill(&ballast);
    let mut writer = open(Writer::open, &Settings { rotate_bytes: bytes, ..settings(&out) });
    flush(&mut writer);
    wait_until("it is noticed", &writer, |health| health.trouble.is_some());
    assert!(writer.health().trouble.unwrap().contains("cannot merge"));
    assert_eq!((files(&out).len(), fs::read_dir(&out).unwrap().count()), (4, 5));
    writer.finish().unwrap();
    fs::remove_file(&ballast).unwrap();
    let mut writer = open(Writer::open, &Settings { rotate_bytes: bytes, ..settings(&out) });
    flush(&mut writer);
    wait_until("they are merged", &writer, |health| health.files == 1);
    assert!(found(&out).into_iter().eq(0..40));
    writer.finish().unwrap();
}
