use super::*;
use crate::tune::decision_engine::tests::{at, engine, learn, outcome, prefix};
use crate::tune::fake_kernel::FakeKernel;
use thalweg_policy::{ArmId, Group};

const BEFORE: &str = "an earlier boot";

fn learned() -> DecisionEngine {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    engine.observe(8, &outcome("198.51.100.0/24", ArmId(1), Group::Treated, 90.0), at(40.0));
    engine
}

#[test]
fn learned_state_is_restored_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/tune.json");
    let engine = learned();
    let (mut state, nothing) = State::open(&path).unwrap();
    assert!(nothing.is_empty());
    state.finish(&engine).unwrap();
    drop(state);
    let (_state, learned) = State::open(&path).unwrap();
    let numbers: Vec<Option<u32>> = learned.iter().map(|(netns, _)| *netns).collect();
    assert_eq!(numbers, [None, Some(8)]);
    assert_eq!(learned[0].1.account(prefix("192.0.2.0/24")).unwrap().arms[1].connections, 20);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn state_of_other_namespaces_is_discarded_after_a_reboot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune.json");
    write(&path, BEFORE, namespaces(&learned())).unwrap();
    let (_state, learned) = State::open(&path).unwrap();
    assert_eq!(learned.len(), 1);
    assert_eq!(learned[0].0, None);
}

#[test]
fn a_damaged_state_file_is_an_error_and_is_not_modified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune.json");
    write(&path, BEFORE, namespaces(&learned())).unwrap();
    let bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    let mut torn = bytes.clone();
    torn.truncate(middle);
    let mut flipped = bytes.clone();
    flipped[middle] = 0xff;
    let newer = String::from_utf8(bytes.clone()).unwrap().replacen("\"format\":1", "\"format\":9", 1).into_bytes();
    for (bytes, part) in [
        (torn, "EOF"),
        (flipped, "invalid UTF-8"),
        (newer, "format 9"),
        (b"{}".to_vec(), "its key `format` is missing"),
    ] {
        fs::write(&path, &bytes).unwrap();
        let error = State::open(&path).unwrap_err();
        assert_eq!(error.code, "bad-state");
        assert!(error.found.contains(part) && error.hint.contains("sudo mv"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "nothing is lost");
    }
}

#[test]
fn a_state_file_is_locked_by_one_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune.json");
    let first = State::open(&path).unwrap();
    assert_eq!(State::open(&path).unwrap_err().code, "state-in-use");
    drop(first);
    State::open(&path).unwrap();
}

#[test]
fn state_is_written_when_due_and_a_failed_write_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune.json");
    let engine = learned();
    let (mut state, _) = State::open(&path).unwrap();
    state.tick(&engine, at(1.0));
    assert!(state.writing.is_none() && !path.exists(), "it is not due");
    let write_now = |state: &mut State| {
        state.due = Instant::now();
        state.tick(&engine, at(1.0));
        while state.writing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            thread::yield_now();
        }
        state.tick(&engine, at(2.0));
    };
    write_now(&mut state);
    assert_eq!(*state.last(), Ok(Some(at(1.0).as_micros())));
    assert!(read(&fs::read_to_string(&path).unwrap(), &state.boot).unwrap().len() == 2);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    write_now(&mut state);
    assert!(state.last().is_err());
}

#[test]
fn a_state_file_moved_aside_is_preserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune.json");
    write(&path, BEFORE, namespaces(&learned())).unwrap();
    let (state, _) = State::open(&path).unwrap();
    let aside = state.set_aside(at(0.0)).unwrap();
    assert!(!path.exists());
    assert_eq!(aside.file_name().unwrap(), "tune.json.1700000000");
    assert!(read(&fs::read_to_string(aside).unwrap(), "").is_ok());
}
