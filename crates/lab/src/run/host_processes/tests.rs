//! Tests with faulty hosts, which are shell scripts.

use super::*;
use rustix::process::test_kill_process_group;
use std::cell::Cell;
use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};

const LONG: Duration = Duration::from_secs(30);

fn host(script: &str) -> Child {
    let mut process = Process::new("sh");
    process.args(["-c", script]).process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn processes<'a>(is_cancelled: &'a dyn Fn() -> bool, scripts: &[&str]) -> HostProcesses<'a> {
    let mut processes = HostProcesses::new(is_cancelled);
    for (number, script) in scripts.iter().enumerate() {
        processes.add(&format!("host-{number}"), host(script), Kind::Process).unwrap();
    }
    processes
}

fn receive(processes: &mut HostProcesses<'_>) -> Result<Option<(usize, HostEvent)>, Failure> {
    processes.receive(Some(Instant::now() + LONG))
}

fn error(received: Result<Option<(usize, HostEvent)>, Failure>) -> Error {
    match received {
        Err(Failure::Failed(error)) => error,
        other => panic!("expected an error, found {other:?}"),
    }
}

#[test]
fn commands_reach_their_host_and_events_carry_the_host_number() {
    let echo = r#"read line; case $line in *stop*) echo '{"event":"over","flow":"large"}';; esac; read end"#;
    let mut processes = processes(&|| false, &["read end", echo]);
    processes.send(1, &Command::Stop);
    let over = HostEvent::Over { flow: "large".to_owned() };
    assert_eq!(receive(&mut processes).unwrap(), Some((1, over)));
}

#[test]
fn a_host_that_dies_is_reported_with_its_last_output() {
    let mut processes = processes(&|| false, &["read end", "echo first >&2; echo 'no memory' >&2; exit 7"]);
    let error = error(receive(&mut processes));
    assert_eq!(error.code, "host-died");
    for words in ["`host-1`", "exit status: 7", "first | no memory"] {
        assert!(error.message.contains(words), "`{words}` is not in {error}");
    }
}

#[test]
fn the_last_output_of_a_verbose_host_is_kept() {
    let mut processes = processes(&|| false, &["i=0; while [ $i -lt 1000 ]; do echo line $i >&2; i=$((i+1)); done"]);
    let error = error(receive(&mut processes));
    assert!(error.message.contains("line 999") && !error.message.contains("line 10 "), "{error}");
}

#[test]
fn a_host_failure_is_reported_with_the_message_of_the_host() {
    let failed = r#"{"event":"failed","code":"cannot-listen","message":"port 5001","hint":"ss -lntup"}"#;
    let mut processes = processes(&|| false, &[&format!("echo '{failed}'; exit 1")]);
    assert_eq!(error(receive(&mut processes)), Error::new("cannot-listen", "port 5001", "ss -lntup"));
}

#[test]
fn an_invalid_event_of_a_host_is_reported_verbatim() {
    let mut processes = processes(&|| false, &["echo hello; read end"]);
    let error = error(receive(&mut processes));
    assert_eq!(error.code, "bad-host");
    assert!(error.message.ends_with("hello"), "{error}");
}

#[test]
fn a_silent_host_is_not_waited_for() {
    let mut processes = processes(&|| false, &["read end"]);
    assert_eq!(processes.receive(Some(Instant::now() + CHECK_INTERVAL * 2)).unwrap(), None);
    let silence = processes.timeout_error(&[0], "configured", LONG);
    assert_eq!(silence.code, "host-silent");
    assert!(silence.message.contains("host-0") && silence.message.contains("30 s"), "{silence}");
}

#[test]
fn a_stop_request_is_handled_while_hosts_are_silent() {
    let checks = Cell::new(0);
    let is_cancelled = || {
        checks.set(checks.get() + 1);
        checks.get() > 2
    };
    let mut processes = processes(&is_cancelled, &["read end"]);
    assert_eq!(processes.receive(None).unwrap_err(), Failure::Cancelled);
}

#[test]
fn a_stop_request_is_handled_while_hosts_send_events() {
    let mut processes = HostProcesses::new(&|| true);
    let events = 0..3 * MAX_EVENTS_PER_CHECK;
    for _ in events.clone() {
        processes.output_sender.send((0, Output::Event(HostEvent::Over { flow: "large".to_owned() }))).unwrap();
    }
    assert_eq!(events.take_while(|_| receive(&mut processes).is_ok()).count(), MAX_EVENTS_PER_CHECK);
}

#[test]
fn hosts_exit_with_their_owner_and_unresponsive_ones_are_killed() {
    let children = ["read end", "trap '' TERM HUP; while :; do sleep 1000; done"].map(host);
    let pids = children.each_ref().map(Pid::from_child);
    let mut processes = HostProcesses::new(&|| false);
    for child in children {
        processes.add("host", child, Kind::Process).unwrap();
    }
    drop(processes);
    // Their child processes, which are in the same process groups, must exit too.
    let give_up = Instant::now() + LONG;
    while pids.iter().any(|pid| test_kill_process_group(*pid).is_ok()) {
        assert!(Instant::now() < give_up, "a process is still there");
        thread::yield_now();
    }
}

#[test]
fn a_host_that_does_not_read_does_not_delay_other_hosts() {
    let mut processes = processes(&|| false, &["while :; do sleep 1000; done"]);
    // This exceeds the capacity of a pipe.
    for _ in 0..1000 {
        processes.send(0, &Command::Over { flow: "x".repeat(1000) });
    }
    assert_eq!(processes.receive(Some(Instant::now())).unwrap(), None);
}
