use super::super::Settings;
use super::super::disk::Disk;
use std::time::Duration;
use thalweg_store::Exit;

#[test]
fn settings_that_make_no_sense_are_refused_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records");
    let usual = Settings::of(out.clone());
    for (flag, settings) in [
        ("--flush", Settings { flush: Duration::from_millis(999), ..usual.clone() }),
        ("--rotate", Settings { rotate: Duration::from_secs(9), ..usual.clone() }),
        ("--max-size", Settings { max_bytes: 127_999_999, ..usual.clone() }),
    ] {
        let problem = Disk::open(settings).unwrap_err();
        assert_eq!((problem.exit, problem.place.as_str()), (Exit::Refused, flag));
        assert!(!out.exists());
    }
    Disk::open(Settings { max_bytes: 128_000_000, ..usual }).unwrap();
}

#[test]
fn a_place_that_is_no_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let problem = Disk::open(Settings::of(file.clone())).unwrap_err();
    assert_eq!((problem.code, problem.place), ("not-accessible", file.display().to_string()));
    assert!(problem.hint.contains("--out"));
}
