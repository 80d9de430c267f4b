//! Hosts that misbehave, played by a shell.

use super::*;
use rustix::process::test_kill_process_group;
use std::cell::Cell;
use std::os::unix::process::CommandExt;
use std::process::{Command as Process, Stdio};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

fn host(script: &str) -> Child {
    let mut process = Process::new("sh");
    process.args(["-c", script]).process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn crew<'a>(is_cancelled: &'a dyn Fn() -> bool, scripts: &[&str]) -> Crew<'a> {
    let mut crew = Crew::new(is_cancelled);
    for (number, script) in scripts.iter().enumerate() {
        crew.add(&format!("host-{number}"), host(script), Kind::Process).unwrap();
    }
    crew
}

fn hear(crew: &mut Crew<'_>) -> Result<Option<(usize, HostEvent)>, Failure> {
    crew.hear(Some(Instant::now() + LONG))
}

fn error(heard: Result<Option<(usize, HostEvent)>, Failure>) -> Error {
    match heard {
        Err(Failure::Failed(error)) => error,
        other => panic!("expected an error, found {other:?}"),
    }
}

#[test]
fn what_hosts_are_told_reaches_them_and_what_they_say_has_their_number() {
    let echo = r#"read line; case $line in *stop*) echo '{"event":"over","flow":"large"}';; esac; read end"#;
    let mut crew = crew(&|| false, &["read end", echo]);
    crew.tell(1, &Command::Stop);
    let over = HostEvent::Over { flow: "large".to_owned() };
    assert_eq!(hear(&mut crew).unwrap(), Some((1, over)));
}

#[test]
fn a_host_that_dies_is_told_with_its_last_words() {
    let mut crew = crew(&|| false, &["read end", "echo first >&2; echo 'no memory' >&2; exit 7"]);
    let error = error(hear(&mut crew));
    assert_eq!(error.code, "host-died");
    for words in ["`host-1`", "exit status: 7", "first | no memory"] {
        assert!(error.message.contains(words), "`{words}` is not in {error}");
    }
}

#[test]
fn of_a_talkative_host_the_last_words_are_kept() {
    let mut crew = crew(&|| false, &["i=0; while [ $i -lt 1000 ]; do echo line $i >&2; i=$((i+1)); done"]);
    let error = error(hear(&mut crew));
    assert!(error.message.contains("line 999") && !error.message.contains("line 10 "), "{error}");
}

#[test]
fn a_host_that_cannot_go_on_is_told_in_its_own_words() {
    let failed = r#"{"event":"failed","code":"cannot-listen","message":"port 5001","hint":"ss -lntup"}"#;
    let mut crew = crew(&|| false, &[&format!("echo '{failed}'; exit 1")]);
    assert_eq!(error(hear(&mut crew)), Error::new("cannot-listen", "port 5001", "ss -lntup"));
}

#[test]
fn a_host_that_says_what_is_no_event_is_told_with_that() {
    let mut crew = crew(&|| false, &["echo hello; read end"]);
    let error = error(hear(&mut crew));
    assert_eq!(error.code, "bad-host");
    assert!(error.message.ends_with("hello"), "{error}");
}

#[test]
fn a_host_that_says_nothing_is_not_waited_for() {
    let mut crew = crew(&|| false, &["read end"]);
    assert_eq!(crew.hear(Some(Instant::now() + LOOK * 2)).unwrap(), None);
    let silence = crew.silence(&[0], "configured", LONG);
    assert_eq!(silence.code, "host-silent");
    assert!(silence.message.contains("host-0") && silence.message.contains("30 s"), "{silence}");
}

#[test]
fn a_stop_request_is_handled_while_hosts_are_silent() {
    let looks = Cell::new(0);
    let is_cancelled = || {
        looks.set(looks.get() + 1);
        looks.get() > 2
    };
    let mut crew = crew(&is_cancelled, &["read end"]);
    assert_eq!(crew.hear(None).unwrap_err(), Failure::Cancelled);
}

#[test]
fn a_stop_request_is_handled_while_hosts_send_events() {
    let mut crew = Crew::new(&|| true);
    let events = 0..3 * AT_ONCE;
    for _ in events.clone() {
        crew.say.send((0, Said::Event(HostEvent::Over { flow: "large".to_owned() }))).unwrap();
    }
    assert_eq!(events.take_while(|_| hear(&mut crew).is_ok()).count(), AT_ONCE);
}

#[test]
fn hosts_end_with_their_crew_and_those_that_do_not_listen_are_killed() {
    let children = ["read end", "trap '' TERM HUP; while :; do sleep 1000; done"].map(host);
    let pids = children.each_ref().map(Pid::from_child);
    let mut crew = Crew::new(&|| false);
    for child in children {
        crew.add("host", child, Kind::Process).unwrap();
    }
    drop(crew);
    // Their child processes, too: they are in the same groups, and only init waits for them.
    let give_up = Instant::now() + LONG;
    while pids.iter().any(|pid| test_kill_process_group(*pid).is_ok()) {
        assert!(Instant::now() < give_up, "a process is still there");
        thread::yield_now();
    }
}

#[test]
fn a_host_that_does_not_read_delays_no_other_host() {
    let mut crew = crew(&|| false, &["while :; do sleep 1000; done"]);
    // More than a pipe takes.
    for _ in 0..1000 {
        crew.tell(0, &Command::Over { flow: "x".repeat(1000) });
    }
    assert_eq!(crew.hear(Some(Instant::now())).unwrap(), None);
}
