//! Requests of `record` that are rejected.

use crate::common::{Done, Namespace, assert_refused, run, wait_until};
use crate::stage::Stage;
use crate::traffic::connect;
use rustix::process::Signal;
use std::process::Command;

fn record_behind(stage: &Stage, behind: &[&str], options: &[&str]) -> Done {
    let line = stage.command(options);
    let line: Vec<&str> = behind.iter().copied().chain(line.iter().map(String::as_str)).collect();
    run(Command::new(line[0]).args(&line[1..]))
}

/// Runs `record` in a mount namespace that a script has prepared.
fn record_after(stage: &Stage, preparation: &str) -> Done {
    let script = format!("{preparation} && exec \"$@\"");
    record_behind(stage, &["unshare", "--mount", "sh", "-c", &script, "sh"], &[])
}

#[test]
fn an_unprivileged_user_is_advised_to_use_sudo() {
    let Some(stage) = Stage::new() else { return };
    let done = record_behind(&stage, &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"], &[]);
    assert_refused(&done, 4, "no-right", "sudo");
    assert!(!stage.path("records").exists(), "nothing was made");
}

#[test]
fn root_without_capabilities_gets_the_missing_ones_listed() {
    let Some(stage) = Stage::new() else { return };
    let without = "-net_admin,-sys_admin";
    let done = record_behind(&stage, &["setpriv", "--bounding-set", without, "--inh-caps", without], &[]);
    assert_refused(&done, 4, "no-right", "CAP_SYS_ADMIN");
    assert!(done.error.contains("CAP_NET_ADMIN"), "{}", done.error);
}

#[test]
fn missing_requirements_are_listed() {
    let Some(stage) = Stage::new() else { return };
    let done = record_after(&stage, "mount -t tmpfs none /sys/kernel/btf");
    assert_refused(&done, 4, "no-btf", "distribution's own kernel");
    let mount = stage.cgroup.parent().unwrap().display().to_string();
    let done = record_after(&stage, &format!("umount {mount}"));
    assert_refused(&done, 4, "no-cgroup2", "mount -t cgroup2");
}

#[test]
fn an_old_kernel_is_rejected_with_the_minimum_version() {
    let Some(stage) = Stage::new() else { return };
    // The kernel reports release 2.6 to such a process (personality(2)).
    let done = record_behind(&stage, &["setarch", "--uname-2.6"], &[]);
    assert_refused(&done, 4, "old-kernel", "newer kernel");
    assert!(done.error.contains("found Linux 2.6.") && done.error.contains("6.1 or newer"), "{}", done.error);
    assert!(!stage.path("records").exists(), "nothing was made");
}

#[test]
fn invalid_options_are_rejected() {
    let Some(stage) = Stage::new() else { return };
    let refused = |options: &[&str]| record_behind(&stage, &[], options);
    // systemd restarts the agent after code 1, but not after code 2; the cgroup may appear later.
    assert_refused(&refused(&["--cgroup", "/no/such.slice"]), 1, "no-cgroup", "exists while it runs");
    for (options, expected) in [
        (["--sample", "2/3"], "1/10"),
        (["--idle-gap", "soon"], "200ms"),
        (["--max-size", "much"], "a size with its unit"),
        (["--addresses", "none"], "truncated"),
    ] {
        let done = refused(&options);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.error.contains(expected), "{}", done.error);
    }
    let file = stage.path("file");
    std::fs::write(&file, "").unwrap();
    let done = refused(&["--out", file.to_str().unwrap()]);
    assert!(done.code.is_some_and(|code| code != 0) && done.error.contains("hint:"), "{done:?}");
}

#[test]
fn a_second_recorder_of_the_same_connections_is_rejected_and_the_first_continues() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let (records, socket) = (stage.path("others"), stage.path("other.sock"));
    let elsewhere = ["--out", records.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    let done = record_behind(&stage, &[], &elsewhere);
    assert_refused(&done, 1, "already-recording", "status");
    assert!(done.error.contains(&format!("process {}", agent.process.pid())), "{}", done.error);
    connect(&namespaces, "10.9.8.1").close_by_client();
    agent.wait_for_closed(2);
    assert_eq!(agent.end().iter().filter(|row| row.text("kind") == "close").count(), 2);
}

#[test]
fn a_second_recorder_with_the_same_directory_or_socket_is_rejected() {
    let Some(stage) = Stage::new() else { return };
    let agent = stage.record(&[]);
    // The cgroup differs, so that only the folder or the socket conflicts.
    let other = stage.cgroup.with_extension("other");
    std::fs::create_dir(&other).unwrap();
    let (cgroup, records, socket) = (other.to_str().unwrap(), stage.path("others"), stage.path("other.sock"));
    let done = record_behind(&stage, &[], &["--cgroup", cgroup, "--socket", socket.to_str().unwrap()]);
    assert_refused(&done, 1, "busy", "--out");
    let done = record_behind(&stage, &[], &["--cgroup", cgroup, "--out", records.to_str().unwrap()]);
    assert_refused(&done, 1, "already-recording", "status");
    std::fs::remove_dir(&other).unwrap();
    assert_eq!(agent.process.end(Signal::TERM).0, Some(0), "the first has gone on");
}

#[test]
fn a_killed_recorder_leaves_nothing_that_blocks_the_next() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let killed = stage.record(&[]);
    let open = connect(&namespaces, "10.9.8.1");
    assert_eq!(killed.process.end(Signal::KILL).0, None);
    // The connections are new to the second recorder: nothing of the first is left in the kernel.
    let agent = stage.record(&[]);
    assert_eq!(agent.counter("joined"), 2);
    open.close_by_client();
    agent.wait_for_closed(2);
    agent.end();
}

#[test]
fn every_termination_signal_exits_with_code_0() {
    let Some(stage) = Stage::new() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let agent = stage.record(&[]);
        let (code, output) = agent.process.end(signal);
        assert_eq!(code, Some(0), "{signal:?}");
        assert!(output.contains("recording has ended"), "{output}");
        assert!(!stage.path("agent.sock").exists(), "the socket is gone");
    }
}

#[test]
fn sighup_rereads_settings_and_does_not_stop_recording() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let key = stage.path("key");
    let agent = stage.record(&["--addresses", "hashed", "--key", key.to_str().unwrap()]);
    let pid = rustix::process::Pid::from_raw(agent.process.pid().try_into().unwrap()).unwrap();
    let hang_up = || rustix::process::kill_process(pid, Signal::HUP).unwrap();
    // The file is now readable by others.
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    hang_up();
    wait_until("it is refused", || agent.status()["reload_trouble"].as_str().is_some_and(|why| why.contains("0644")));
    assert!(agent.status_text().contains("the last reload of the settings failed"));
    std::fs::remove_file(&key).unwrap();
    hang_up();
    wait_until("it is read", || agent.status()["reload_trouble"].is_null());
    assert!(key.exists(), "a new key");
    connect(&namespaces, "10.9.8.1").close_by_client();
    agent.wait_for_closed(2);
    hang_up();
    wait_until("rows are written", || agent.status()["writer"]["rows_waiting"] == 0);
    let (code, output) = agent.process.end(Signal::TERM);
    assert_eq!(code, Some(0));
    assert_eq!(output.matches("SIGHUP: reloading the settings").count(), 3, "{output}");
}

#[test]
fn a_low_open_file_limit_is_reported_with_a_retryable_exit_code() {
    let Some(stage) = Stage::new() else { return };
    for limit in ["8", "20", "32"] {
        let done = record_behind(&stage, &["prlimit", &format!("--nofile={limit}")], &[]);
        assert_refused(&done, 75, "too-few-descriptors", "LimitNOFILE=");
        assert!(!stage.path("records").exists(), "nothing was made");
    }
}

#[test]
fn lines_for_the_journal_have_priorities() {
    let Some(stage) = Stage::new() else { return };
    // JOURNAL_STREAM is the device and the inode of the stream (systemd.exec(5)).
    let line = stage.command(&["--sample", "1/2"]);
    let script = "exec 3>&1; export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/3); exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(&line);
    let agent = crate::common::Running::start(&mut command);
    assert!(agent.said.starts_with("<6>recording "), "{}", agent.said);
    assert_eq!(agent.end(Signal::TERM).0, Some(0));
    let agent = stage.record_behind(&[], &[]);
    assert_eq!(agent.process.end(Signal::TERM).0, Some(0), "and none elsewhere");
}
