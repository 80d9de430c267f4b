//! Requests of `cc` that are rejected.

use crate::common::assert_refused;
use crate::stage::Stage;

#[test]
fn an_unprivileged_user_is_advised_to_use_sudo() {
    let Some(stage) = Stage::new() else { return };
    for command in [&["cc", "load", "bbr_cpu"][..], &["cc", "unload", "bbr_cpu"], &["cc", "status"]] {
        assert_refused(&stage.agent_as_unprivileged(command), 4, "no-right", "sudo");
    }
    let list = stage.agent_as_unprivileged(&["cc", "list"]);
    assert_eq!(list.code, Some(0));
    assert!(list.out.contains("reno") && list.out.contains("run this as root"), "{}", list.out);
}

#[test]
fn names_and_files_that_are_not_algorithms_are_rejected() {
    let Some(stage) = Stage::new() else { return };
    let load = |what: &str| stage.agent(&["cc", "load", what]);
    assert_refused(&load("bbr_cpuu"), 2, "unknown-algorithm", "cc load bbr_cpu");
    assert_refused(&load("./missing.bpf.o"), 2, "no-file", "check the path");
    assert_refused(&load("/proc/self/status"), 2, "broken-object", "compile it again");
    assert_refused(&load(&stage.object("bbr_cpu")), 2, "not-an-algorithm", "SEC(\".struct_ops.link\")");
    let done = stage.agent(&["cc", "load", &stage.object("fixed_window"), "--rule", "paper"]);
    assert_refused(&done, 2, "settings-of-file", "omit --set and --rule");
    let done = stage.agent(&["cc", "load", "bbr_cpu", "--rule", "magic"]);
    assert_refused(&done, 2, "bad-setting", "agent-cc.md");
    assert!(done.error.contains("one of paper, schedule"), "the rules that exist: {}", done.error);
    assert_eq!(stage.registered("bbr_cpu"), None);
}

#[test]
fn unsupported_parameters_are_rejected_with_the_supported_ones() {
    let Some(stage) = Stage::new() else { return };
    let cases = [
        ("bbr_tuned", "gain=2", "one of probe_gain, "),
        ("bbr_tuned", "probe_gain=2", "a number from 1 to 1.9"),
        ("bbr_tuned", "cruise_phases=1.5", "a whole number from 0 to 62"),
        ("bbr_tuned", "probe_gain", "PARAM=VALUE"),
        ("bbr_tuned", "auto_weight=0.5", "one of probe_gain, "),
        ("bbr_auto", "auto_weight=2", "a number from 0.01 to 1"),
        ("bbr3", "rule=magic", "one of none, paper, schedule"),
        ("bbr3", "probe_gain=1.5", "expected rule"),
    ];
    for (name, setting, expected) in cases {
        let done = stage.agent(&["cc", "load", name, "--set", setting, "--keep"]);
        assert_refused(&done, 2, "bad-setting", expected);
        assert_eq!(stage.registered(name), None);
    }
}

#[test]
fn a_truncated_object_is_rejected() {
    let Some(stage) = Stage::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("half.bpf.o");
    let object = std::fs::read(stage.object("fixed_window")).unwrap();
    std::fs::write(&half, &object[..object.len() / 2]).unwrap();
    assert_refused(&stage.agent(&["cc", "load", half.to_str().unwrap()]), 2, "broken-object", "compile it again");
}

#[test]
fn a_damaged_object_is_rejected_without_a_crash() {
    let Some(stage) = Stage::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.bpf.o");
    let object = std::fs::read(stage.object("fixed_window")).unwrap();
    let load = || stage.agent(&["cc", "load", damaged.to_str().unwrap(), "--keep"]);
    // The error contains the name of a member, which need not be valid UTF-8.
    let name = b"\0snd_cwnd\0";
    let at = (0..object.len()).find(|&at| object[at..].starts_with(name)).expect("the program reads it");
    let mut renamed = object.clone();
    renamed[at + 1] |= 0x80;
    std::fs::write(&damaged, renamed).unwrap();
    assert_refused(&load(), 1, "kernel-refuses", "uname -r");
    for (number, bytes) in [&[][..], &object[..64], b"\x7fELF", &[0; 4096]].into_iter().enumerate() {
        std::fs::write(&damaged, bytes).unwrap();
        assert_refused(&load(), 2, "broken-object", "compile it again");
        assert_eq!(stage.registered("fixed_window"), None, "{number}");
    }
    // Damages 40 bytes of the object at a time.
    for start in (64..object.len()).step_by(object.len() / 12) {
        let mut bytes = object.clone();
        bytes[start..].iter_mut().take(40).for_each(|byte| *byte ^= 0xa5);
        std::fs::write(&damaged, bytes).unwrap();
        let done = load();
        assert!(matches!(done.code, Some(0..=2)), "{start}: {done:?}");
        stage.agent(&["cc", "unload", "fixed_window"]);
    }
}

#[test]
fn a_file_that_is_not_regular_is_rejected_immediately() {
    let Some(stage) = Stage::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.bpf.o");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    for file in [fifo.to_str().unwrap(), folder.path().to_str().unwrap(), "/dev/zero"] {
        let done = stage.agent(&["cc", "load", file]);
        assert_refused(&done, 2, "no-file", "check the path");
        assert!(done.error.contains("not a regular file"), "{}", done.error);
    }
}

#[test]
fn a_verifier_rejection_is_shown_with_the_verifier_log() {
    let Some(stage) = Stage::new() else { return };
    let done = stage.agent(&["cc", "load", &stage.object("rejected"), "--keep"]);
    assert_refused(&done, 1, "kernel-refuses", "its last messages");
    assert!(done.error.contains("write"), "the verifier's own reason: {}", done.error);
    assert_eq!(stage.listed("rejected"), None);
}

#[test]
fn only_algorithms_in_ebpf_can_be_unloaded() {
    let Some(stage) = Stage::new() else { return };
    assert_refused(&stage.agent(&["cc", "unload", "reno"]), 1, "not-loaded", "cc list");
    assert_refused(&stage.agent(&["cc", "unload", "bbr_cpu"]), 1, "not-loaded", "cc list");
}
