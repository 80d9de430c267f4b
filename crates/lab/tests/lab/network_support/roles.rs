//! Helper processes of tests: this test program, started with a role, which the test `the_controlled_process` runs.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use thalweg_lab::net::{LinkKind, Network, probe, sysctl};

/// Environment variable with the role, as JSON.
const ROLE: &str = "THALWEG_NETWORK_ROLE";
/// Prefix of a process's report, because libtest writes to the same output.
const REPORT_PREFIX: &str = "report: ";
/// UDP port of [`echo`].
const PORT: u16 = 7007;

/// Returns the command line that starts a role.
pub fn words(role: &Value) -> Vec<OsString> {
    words_with(std::env::current_exe().expect("the test's own file").into(), role)
}

/// Like [`words`], for a copy of this program.
pub fn words_with(program: OsString, role: &Value) -> Vec<OsString> {
    let environment = format!("{ROLE}={role}").into();
    vec![
        "env".into(),
        environment,
        program,
        "network_support::roles::the_controlled_process".into(),
        "--exact".into(),
        "--nocapture".into(),
    ]
}

/// Returns a command that runs a role.
pub fn command(role: &Value) -> Command {
    let words = words(role);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Returns the report of a role from its output.
pub fn report_from(output: &str) -> Value {
    let report = output.lines().find_map(|line| line.split_once(REPORT_PREFIX));
    let (_, answer) = report.unwrap_or_else(|| panic!("the process reported nothing: {output}"));
    serde_json::from_str(answer).expect("JSON")
}

/// Waits for the report of a running role.
pub fn wait_for_report(child: &mut Child) -> Value {
    let stdout = child.stdout.as_mut().expect("a pipe");
    let mut output = String::new();
    let mut lines = BufReader::new(stdout).lines();
    while let Some(Ok(line)) = lines.next() {
        output.push_str(&line);
        if line.contains(REPORT_PREFIX) {
            return report_from(&line);
        }
    }
    panic!("the process exited without a report: {output}");
}

/// Runs a role in a namespace; returns its report.
pub fn play_in(network: &mut Network, namespace: &str, role: &Value) -> Value {
    let child = network.spawn(namespace, &words(role), false).expect("it starts");
    report_from(&super::output_of_child(child))
}

/// Makes the router forward, and starts an echo process at the receiver.
pub fn prepare(network: &mut Network) -> Child {
    let settings = network.sysctls("router");
    play_in(network, "router", &json!({ "role": "sysctls", "settings": settings }));
    let mut echo = network.spawn("receiver", &words(&json!({ "role": "echo" })), false).expect("it starts");
    assert_eq!(wait_for_report(&mut echo), json!("listening"));
    echo
}

/// A returned packet.
#[derive(Clone, Copy, Debug)]
pub struct Back {
    pub number: u64,
    pub sent_us: u64,
    pub back_us: u64,
}

/// Sends numbered packets to the echo; returns those that came back, in order of arrival. `bytes` is the size of the IP
/// packet.
pub fn ping(network: &mut Network, namespace: &str, count: u64, bytes: u64, gap_us: u64) -> Vec<Back> {
    let role = json!({ "role": "ping", "count": count, "bytes": bytes, "gap_us": gap_us });
    let answer = play_in(network, namespace, &role);
    let number = |value: &Value| value.as_u64().expect("a number");
    let back = |row: &Value| Back { number: number(&row[0]), sent_us: number(&row[1]), back_us: number(&row[2]) };
    answer.as_array().expect("rows").iter().map(back).collect()
}

#[test]
fn the_controlled_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let role: Value = serde_json::from_str(&role).expect("JSON");
    match role["role"].as_str().expect("a name") {
        "sysctls" => {
            let settings: BTreeMap<String, String> = serde_json::from_value(role["settings"].clone()).expect("texts");
            print_report(&json!(sysctl::apply(&settings).expect("the kernel takes them")));
        }
        "namespaces" => {
            let outcome = probe::namespaces().err();
            print_report(&json!(outcome));
        }
        "network" => {
            let network = Network::build(&super::experiment(), LinkKind::Relay).expect("a network");
            print_report(&json!({ "commands": network.commands(), "dump": super::dump::live(network) }));
        }
        "algorithms" => {
            print_report(&json!({ "has": probe::algorithms(), "usable": probe::usable_algorithms().unwrap() }));
        }
        "hold" => hold(),
        "echo" => echo(),
        "ping" => print_report(&send_and_receive(&role)),
        other => panic!("no such role: {other}"),
    }
}

fn print_report(value: &Value) {
    println!("{REPORT_PREFIX}{value}");
    std::io::stdout().flush().expect("standard output is open");
}

/// Starts a process that stays in its namespace until its standard input closes.
pub fn spawn_idle_host(network: &mut Network) -> Child {
    let words = ["sh", "-c", "echo here; exec cat"].map(Into::into);
    let mut host = network.spawn("sender", &words, false).expect("it starts");
    let mut line = String::new();
    BufReader::new(host.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "here\n");
    host
}

fn hold() {
    let mut network = Network::build(&super::experiment(), LinkKind::Relay).expect("a network");
    let mut host = spawn_idle_host(&mut network);
    print_report(&json!("holding"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(host.stdin.take());
    host.wait().expect("it ends");
}

/// Sends packets back until standard input closes.
fn echo() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a port");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    print_report(&json!("listening"));
    let mut packet = [0; 2000];
    while let Ok((length, from)) = socket.recv_from(&mut packet) {
        let _ = socket.send_to(&packet[..length], from);
    }
}

fn send_and_receive(role: &Value) -> Value {
    let number = |key: &str| role[key].as_u64().expect("a number");
    let (count, gap) = (number("count"), Duration::from_micros(number("gap_us")));
    // Without the IPv4 and UDP headers.
    let size = number("bytes") as usize - 28;
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a port");
    socket.connect(("10.77.0.2", PORT)).expect("a route");
    // Packets of the tests are in flight for less than this.
    socket.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
    let start = Instant::now();
    let receiver = socket.try_clone().expect("a descriptor");
    let rows = std::thread::spawn(move || {
        let mut rows = Vec::new();
        let mut packet = [0; 2000];
        while let Ok(length) = receiver.recv(&mut packet) {
            let word = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().expect("8 bytes"));
            assert_eq!(length, size, "a packet changed its size");
            rows.push(json!([word(0), word(8), start.elapsed().as_micros() as u64]));
        }
        rows
    });
    for number in 0..count {
        let mut packet = vec![0; size];
        packet[..8].copy_from_slice(&number.to_be_bytes());
        packet[8..16].copy_from_slice(&(start.elapsed().as_micros() as u64).to_be_bytes());
        // The kernel does not report a packet that a queue drops, because the socket has no IP_RECVERR.
        socket.send(&packet).expect("a packet leaves");
        if !gap.is_zero() {
            std::thread::sleep(gap);
        }
    }
    json!(rows.join().expect("rows"))
}
