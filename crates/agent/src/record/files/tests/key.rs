use super::super::Key;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use thalweg_store::Exit;

#[test]
fn a_key_is_created_once_readable_by_its_owner_only_and_reused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/address.key");
    let hash = Key::open(&path).unwrap().hash(b"192.0.2.7");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap().trim().len(), 64);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "something unfinished is left");
    assert_eq!(Key::open(&path).unwrap().hash(b"192.0.2.7"), hash);
    let other = Key::open(&folder.path().join("other.key")).unwrap().hash(b"192.0.2.7");
    assert_ne!(other, hash);
}

#[test]
fn a_key_readable_by_others_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("address.key");
    Key::open(&path).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let problem = Key::open(&path).unwrap_err();
    assert_eq!((problem.exit, problem.code), (Exit::Refused, "key"));
    assert!(problem.found.contains("0640"), "{problem}");
    assert!(problem.hint.contains("chmod 600"), "{problem}");
}

#[test]
fn an_invalid_key_file_is_rejected_and_not_modified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("address.key");
    for text in ["", "secret", &"0".repeat(31), &"0".repeat(30), &"é".repeat(32)] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let problem = Key::open(&path).unwrap_err();
        assert!(problem.expected.contains("32 hexadecimal digits"), "{text}: {problem}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, "0".repeat(32) + "\n").unwrap();
    assert_eq!(Key::open(&path).unwrap().hash(b"x"), Key::of(&[0; 16]).hash(b"x"));
}

#[test]
fn an_unusable_key_path_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let problem = Key::open(&folder.path().join("file/address.key")).unwrap_err();
    assert!(problem.place.ends_with("file/address.key"), "{problem}");
    assert!(problem.hint.contains("--key"), "{problem}");
}
