//! Tests `status`, `top` and `check` as a user sees them; `status` and `top` query a fake agent.

#[path = "common/waiting.rs"]
mod waiting;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use waiting::wait_until;

/// A fake agent with two connections, which records the requests.
struct FakeAgent {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl FakeAgent {
    fn start() -> FakeAgent {
        let agent = FakeAgent { folder: tempfile::tempdir().unwrap(), asked: Arc::default() };
        let listener = UnixListener::bind(agent.socket()).unwrap();
        let requests = Arc::clone(&agent.asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let request: Value = serde_json::from_str(&line).unwrap();
                let answer = answer(&request);
                requests.lock().unwrap().push(request);
                writeln!(stream, "{answer}").unwrap();
            }
        });
        agent
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("agent.sock")
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(request: &Value) -> Value {
    if request["get"] == "status" {
        return json!({
            "version": "0.1.0", "pid": 42, "since_us": 1_700_000_000_000_000u64, "now_us": 1_700_000_012_000_000u64,
            "connections_open": 2, "counters": {"opened": 1500, "lost_events": 7}, "colour": "blue",
        });
    }
    let connection = |number: u64, remote: &str, cc: &str| {
        json!({
            "connection": number, "local": "192.0.2.1:443", "remote": remote, "cc": cc, "goodput_bps": 71.2e6
        })
    };
    let connections = [connection(1, "198.51.100.1:50000", "bbr"), connection(2, "198.51.100.2:50000", "cubic")];
    json!({"looked_us": 0, "total": 12_345, "connections": connections})
}

fn agent(arguments: &[&str], socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-agent"));
    command.args(arguments).arg("--socket").arg(socket).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str], socket: &Path) -> Output {
    agent(arguments, socket).output().expect("it starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn the_status_is_shown_as_text_and_complete_as_json() {
    let fake = FakeAgent::start();
    let shown = run(&["status"], &fake.socket());
    assert_eq!(shown.status.code(), Some(0));
    for part in
        ["since         2023-11-14 22:13:20 UTC (12s)\n", "1,500 opened", "7 events dropped because the queue was full"]
    {
        assert!(text(&shown.stdout).contains(part), "{part}: {}", text(&shown.stdout));
    }
    let json = run(&["status", "--json"], &fake.socket());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["counters"]["opened"], &json["colour"]), (&json!(1500), &json!("blue")));
}

#[test]
fn requirements_of_the_commands_are_checked_for_any_user() {
    let check = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-agent"));
        command.arg("check").args(options).stdin(Stdio::null()).output().expect("it starts")
    };
    let json: Value = serde_json::from_slice(&check(&["--json"]).stdout).unwrap();
    let needs = json["needs"].as_array().unwrap();
    let of = |command: &str| {
        let needed = |need: &&Value| need["commands"].as_array().unwrap().iter().any(|listed| listed == command);
        needs.iter().filter(needed).map(|need| need["name"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("record"), ["kernel", "eBPF", "BTF", "rights", "cgroup v2", "sock_ops"]);
    assert_eq!(of("tune"), ["kernel", "eBPF", "BTF", "rights", "cgroup v2", "sock_ops", "algorithms"]);
    assert_eq!(of("cc"), ["kernel", "eBPF", "BTF", "rights", "struct_ops", "BBR"]);
    let is_missing = needs.iter().any(|need| need["state"] == "missing");
    let shown = check(&[]);
    assert_eq!(shown.status.code(), Some(if is_missing { 4 } else { 0 }), "{shown:?}");
    for need in needs {
        assert!(text(&shown.stdout).contains(need["found"].as_str().unwrap()), "{need}");
        assert_eq!(need["todo"].is_null(), need["state"] == "ok", "{need}");
    }
    for command in ["record", "tune", "cc"] {
        assert!(text(&shown.stdout).contains(&format!("\n{command}: can")), "{}", text(&shown.stdout));
    }
}

#[test]
fn a_missing_requirement_sets_the_exit_code() {
    // Without /proc there are no eBPF settings, no cgroups and no algorithms.
    let script = "mount -t tmpfs none /proc && exec \"$0\" check";
    let command = ["--user", "--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_thalweg-agent")];
    let done = Command::new("unshare").args(command).stdin(Stdio::null()).output().expect("unshare");
    if text(&done.stderr).starts_with("unshare: ") || text(&done.stderr).starts_with("mount: ") {
        return eprintln!("left out: {}", text(&done.stderr));
    }
    assert_eq!(done.status.code(), Some(4), "{done:?}");
    let shown = text(&done.stdout);
    for part in ["missing  eBPF ", "missing  cgroup v2 ", "missing  algorithms ", "record: cannot run: eBPF, "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.matches(" do: ").count() >= 3 && text(&done.stderr).contains("[not-ready]"), "{done:?}");
}

#[test]
fn without_an_agent_both_commands_report_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["status"][..], &["status", "--json"], &["top"], &["top", "--once"]] {
        let done = run(command, &folder.path().join("agent.sock"));
        assert_eq!((done.status.code(), text(&done.stdout)), (Some(1), ""), "{command:?}");
        let stderr = text(&done.stderr);
        assert!(stderr.contains("[not-recording]") && stderr.contains("systemctl start thalweg-agent"), "{stderr}");
    }
}

#[test]
fn the_table_is_printed_once_in_the_requested_order() {
    let fake = FakeAgent::start();
    let done = run(&["top", "--once", "--sort", "retransmit-ratio"], &fake.socket());
    assert_eq!(done.status.code(), Some(0));
    let lines: Vec<&str> = text(&done.stdout).lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("LOCAL ") && lines[1].contains("198.51.100.1:50000") && lines[2].contains("cubic"));
    assert_eq!(fake.asked()[0]["sort"], "retransmit-ratio");
    assert!(text(&done.stderr).contains("the first 2 of 12,345 connections, sorted by RETRANS%"), "{done:?}");
    let unknown = run(&["top", "--once", "--sort", "beauty"], &fake.socket());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("min-rtt"), "the columns that there are: {}", text(&unknown.stderr));
}

#[test]
fn a_live_table_requires_a_terminal() {
    let fake = FakeAgent::start();
    let done = run(&["top"], &fake.socket());
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("[no-terminal]") && text(&done.stderr).contains("top --once"), "{done:?}");
}

struct Screen {
    child: Child,
    keyboard: File,
    terminal: File,
    seen: Arc<Mutex<String>>,
}

impl Screen {
    fn start(fake: &FakeAgent) -> Screen {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let name = std::ffi::OsStr::from_bytes(name.as_bytes());
        let no_control = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
        let terminal = File::options().read(true).write(true).custom_flags(no_control).open(name).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = agent(&["top"], &fake.socket());
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let keyboard = File::from(master);
        let (mut output, printed_text) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let printed = Arc::clone(&printed_text);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                printed.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
        });
        Screen { child, keyboard, terminal, seen: printed_text }
    }

    fn wait_for(&self, what: &str) {
        wait_until(&format!("the terminal shows {what:?}"), || self.seen.lock().unwrap().contains(what));
    }

    fn press(&mut self, key: u8) {
        self.keyboard.write_all(&[key]).unwrap();
    }

    fn takes_lines(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the exit, checks the terminal settings, and returns the exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        assert!(self.takes_lines(), "the terminal was not put back");
        self.wait_for("\x1b[?1049l");
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (code, stderr)
    }
}

#[test]
fn a_key_sorts_the_live_table_and_q_restores_the_terminal() {
    let fake = FakeAgent::start();
    let mut screen = Screen::start(&fake);
    screen.wait_for("sorted by GOODPUT");
    screen.wait_for("198.51.100.2:50000");
    assert!(!screen.takes_lines(), "keys count without Enter");
    screen.press(b'm');
    screen.wait_for("sorted by MINRTT");
    assert_eq!(fake.asked().last().unwrap()["sort"], "min-rtt");
    screen.press(b'q');
    assert_eq!(screen.end(), (Some(0), String::new()));
}

#[test]
fn ctrl_c_and_a_signal_restore_the_terminal() {
    let fake = FakeAgent::start();
    let mut screen = Screen::start(&fake);
    screen.wait_for("sorted by GOODPUT");
    screen.press(3);
    assert_eq!(screen.end(), (Some(0), String::new()));

    let screen = Screen::start(&fake);
    screen.wait_for("sorted by GOODPUT");
    let pid = rustix::process::Pid::from_child(&screen.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(screen.end(), (Some(0), String::new()));
}

#[test]
fn the_live_table_exits_with_the_reason_when_the_agent_stops() {
    let fake = FakeAgent::start();
    let screen = Screen::start(&fake);
    screen.wait_for("sorted by GOODPUT");
    std::fs::remove_file(fake.socket()).unwrap();
    let (code, stderr) = screen.end();
    assert_eq!(code, Some(1));
    assert!(stderr.contains("[not-recording]"), "{stderr}");
}
