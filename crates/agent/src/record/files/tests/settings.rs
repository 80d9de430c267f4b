use super::super::Settings;
use super::super::disk::Disk;
use std::time::Duration;
use thalweg_store::Exit;

#[test]
fn invalid_settings_are_rejected_without_creating_files() {
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
fn a_path_that_is_not_a_directory_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let problem = Disk::open(Settings::of(file.clone())).unwrap_err();
    assert_eq!((problem.code, problem.place), ("not-accessible", file.display().to_string()));
    assert!(problem.hint.contains("--out"));
}
