//! Tests the host process of a router of queue disciplines.

use super::namespace::{enter, has, run};
use crate::network_support::cannot_run;
use crate::network_support::uml::is_in_guest;
use rustix::net::sockopt::set_ip_tos;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};
use thalweg_lab::host;
use thalweg_lab::protocol::{Command, Configuration, HostEvent, Qdisc, Qdiscs, Role};
use thalweg_plan::plan::Experiment;
use thalweg_trace::QueueRow;
use thalweg_units::Span;

const PATIENCE: Duration = Duration::from_secs(60);

/// Number of packets to send, more than the queue can hold.
const PACKETS: u64 = 50;

/// Length of an IP packet in these tests, and of the Ethernet frame around it, in bytes.
const PACKET_BYTES: u64 = 1500;
const FRAME_BYTES: u64 = 1514;

/// The codepoint ECT(0) in the type of service (RFC 3168).
const ECT_0: u8 = 2;

/// Environment variable that is set in the host process.
const HOST: &str = "THALWEG_TEST_HOST";

/// The host process: this test binary, started again.
struct Host {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Host {
    fn start(watch: Qdiscs) -> Host {
        let binary = std::env::current_exe().expect("a test has a binary");
        let mut process = Process::new(binary)
            .args(["--exact", "diag::qdiscs::the_host_process", "--nocapture", "--test-threads", "1"])
            .env(HOST, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut host = Host { process, lines };
        host.send_command(&Command::Configure(Box::new(Configuration {
            sysctls: BTreeMap::new(),
            experiment: experiment(),
            role: Role::Qdiscs { watch },
        })));
        host
    }

    fn send_command(&mut self, command: &Command) {
        let mut line = serde_json::to_string(command).expect("a command is JSON");
        line.push('\n');
        self.process.stdin.as_mut().expect("it is piped").write_all(line.as_bytes()).expect("the host listens");
    }

    /// Returns the next event; skips the output of the test runner.
    fn next(&mut self) -> HostEvent {
        loop {
            let line = self.lines.next().expect("the host goes on").expect("it writes text");
            if let Some(start) = line.find('{') {
                return serde_json::from_str(&line[start..]).expect("it is an event");
            }
        }
    }

    fn begin(&mut self) {
        match self.next() {
            HostEvent::Configured { .. } => self.send_command(&Command::Start { at_monotonic_ns: None }),
            other => panic!("expected `configured`, found {other:?}"),
        }
    }

    fn stop(&mut self) -> (Vec<QueueRow>, BTreeMap<String, f64>, Vec<String>) {
        self.send_command(&Command::Stop);
        let mut rows = Vec::new();
        loop {
            match self.next() {
                HostEvent::Queue(report) => rows.push(report.row(0, 0)),
                HostEvent::Stopped { measured, untrustworthy } => return (rows, measured, untrustworthy),
                other => panic!("expected rows, found {other:?}"),
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The host exits at the end of its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Not a test: the host process of other tests.
#[test]
fn the_host_process() {
    if std::env::var_os(HOST).is_some() {
        // The error was also reported as an event.
        let _ = host::serve();
    }
}

fn experiment() -> Experiment {
    let link = |capacity: Value| {
        json!({
            "capacity": capacity, "buffer": {"kind": "bytes", "bytes": 15_000}, "queue": {"kind": "fifo"},
            "loss": {"kind": "bernoulli", "ratio": 0.0}, "duplicate": 0.0, "delay_ns": 0, "jitter_ns": 0, "reorder": 0.0,
            "reorder_delay_ns": 0,
        })
    };
    let steps = json!([{"at_ns": 0, "rate_bps": 800}, {"at_ns": 500_000_000, "rate_bps": 80_000_000}]);
    let experiment = json!({
        "experiment": 0, "repetition": 0, "sweep": {}, "seed": 1, "duration_ns": null, "sample_interval_ns": 5_000_000,
        "start_jitter_ns": 0, "rtt_ns": 0, "forward": link(json!({"kind": "steps", "steps": steps})),
        "reverse": link(json!({"kind": "unlimited"})), "hosts": {}, "flows": [], "background": [],
        "engine": {"link": "netem", "traffic": "builtin", "offloads": false, "record": false},
    });
    serde_json::from_value(experiment).expect("it is an experiment")
}

/// Creates an interface with a slow shaper and a queue of ten packets, without a receiver behind it.
fn network(size_table: &str) {
    run("ip link add out type veth peer name in");
    run("sysctl -qew net.ipv6.conf.out.disable_ipv6=1 net.ipv6.conf.in.disable_ipv6=1");
    run("ip link set in up");
    run("ip link set out up");
    run("ip address add 10.77.0.1/24 dev out");
    run("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev out nud permanent");
    let limit = 10 * FRAME_BYTES;
    run(&format!("tc qdisc add dev out root handle 1:{size_table} tbf rate 800bit burst 2000 limit {limit}"));
}

fn name(interface: &str, handle: &str) -> (String, String) {
    (interface.to_owned(), handle.to_owned())
}

fn watch(at_ms: u64, command: &str) -> Qdiscs {
    let command = command.split(' ').map(str::to_owned).collect();
    let forward = Qdisc { queue: name("out", "1:"), loss: None, policer: None, rates: Vec::new() };
    Qdiscs { forward: Some(forward), reverse: None, at: vec![(Span(at_ms * 1_000_000), command)] }
}

fn send_packets(count: u64) {
    send_packets_from("10.77.0.1:0", "10.77.0.2:9", count);
}

fn send_packets_from(source: &str, destination: &str, count: u64) {
    let socket = UdpSocket::bind(source).expect("the address is there");
    set_ip_tos(&socket, ECT_0).expect("it is a socket of IPv4");
    let payload = vec![0; PACKET_BYTES as usize - 28];
    for _ in 0..count {
        // Dropped packets are expected.
        let _ = socket.send_to(&payload, destination);
    }
}

/// Returns the statistics of the shaper according to tc.
fn said() -> Value {
    let all: Value = serde_json::from_str(&run("tc -s -j qdisc show dev out")).expect("tc prints JSON");
    all[0].clone()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn prepare(test: &str, size_table: &str) -> bool {
    if !enter(test) {
        return false;
    }
    if !has("tc") {
        cannot_run("tc is missing: sudo apt-get install iproute2");
        return false;
    }
    network(size_table);
    true
}

#[test]
fn rows_match_tc_and_commands_run_at_the_scheduled_times() {
    if prepare("diag::qdiscs::rows_match_tc_and_commands_run_at_the_scheduled_times", "") {
        rows_agree_with_tc(FRAME_BYTES);
    }
}

#[test]
fn bytes_are_packet_sizes_even_with_a_size_table() {
    if prepare("diag::qdiscs::bytes_are_packet_sizes_even_with_a_size_table", " stab overhead -14") {
        rows_agree_with_tc(PACKET_BYTES);
    }
}

/// Checks that rows agree with tc; `counted_bytes` is the size that the kernel counts for a packet.
fn rows_agree_with_tc(counted_bytes: u64) {
    let faster = "tc qdisc change dev out root handle 1: tbf rate 80mbit burst 2000 limit 15140";
    send_packets(PACKETS);
    let at_first = said();
    let mut host = Host::start(watch(500, faster));
    host.begin();
    let mut offered = PACKETS;
    until("the queue is empty", || {
        // A shaper whose timer was set for the old rate applies the new rate when a packet arrives.
        send_packets(1);
        offered += 1;
        said()["qlen"] == 0
    });
    let (rows, measured, _) = host.stop();
    let tc = said();
    let last = rows.last().expect("there are rows");
    assert!(rows.iter().all(|row| row.link == "forward"));
    assert!(rows.windows(2).all(|two| two[0].t_us < two[1].t_us && two[0].sent_packets <= two[1].sent_packets));

    let number = |key: &str| tc[key].as_u64().unwrap_or_else(|| panic!("tc says no {key}: {tc}"));
    assert_eq!(last.sent_packets, number("packets"));
    assert_eq!(last.sent_packets * counted_bytes, number("bytes"), "what the kernel counts");
    assert_eq!(last.sent_bytes, last.sent_packets * PACKET_BYTES);
    assert_eq!(last.dropped_packets, number("drops"));
    assert_eq!(last.sent_packets + last.dropped_packets, offered);
    assert_eq!((last.backlog_packets, last.backlog_bytes, last.lost_packets, last.marked_packets), (0, 0, 0, 0));

    // Before the command, each packet would have taken 15 seconds.
    let full = rows.iter().max_by_key(|row| row.backlog_packets).expect("there are rows");
    assert_eq!(full.backlog_packets, at_first["qlen"].as_u64().expect("tc says it"));
    assert_eq!(full.backlog_bytes, full.backlog_packets * PACKET_BYTES);
    let (before, after): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.t_us < 500_000);
    assert!(before.iter().all(|row| row.sent_packets < last.sent_packets), "the command ran too early");
    assert!(!before.is_empty() && !after.is_empty());
    for row in &before {
        assert_eq!(row.capacity_bytes, Some(row.t_us / 10_000));
    }
    let fast_bytes = (last.t_us - 500_000) * 10;
    let capacity = last.capacity_bytes.expect("it has a limit");
    assert!((50 + fast_bytes..=60 + fast_bytes).contains(&capacity), "{last:?}");

    assert!(measured["qdisc_sampling_cpu_percent"] > 0.0, "{measured:?}");
    assert!(measured["qdisc_change_lateness_worst_us"] > 0.0, "{measured:?}");
}

#[test]
fn drops_of_the_upstream_qdisc_count_as_random_losses() {
    if !prepare("diag::qdiscs::drops_of_the_upstream_qdisc_count_as_random_losses", "") {
        return;
    }
    // The queue of the reverse direction drops nothing; losses are the drops of the other interface's shaper.
    run("tc qdisc add dev in root handle 2: bfifo limit 15000");
    let reverse = Qdisc { queue: name("in", "2:"), loss: Some(name("out", "1:")), policer: None, rates: Vec::new() };
    let mut host = Host::start(Qdiscs { forward: None, reverse: Some(reverse), at: Vec::new() });
    host.begin();
    send_packets(PACKETS);
    let drops = said()["drops"].as_u64().expect("tc says it");
    let (rows, measured, untrustworthy) = host.stop();
    let last = rows.last().expect("there are rows");
    assert!(drops > 0);
    assert_eq!((last.link, last.lost_packets, last.dropped_packets), ("reverse", drops, 0));
    assert_eq!(last.capacity_bytes, None, "the link is unlimited");
    assert_eq!(measured.get("qdisc_change_lateness_worst_us"), None, "there was no command");
    assert_eq!(untrustworthy, Vec::<String>::new());
}

#[test]
fn marks_and_losses_match_tc_on_kernels_that_report_them() {
    let test = "diag::qdiscs::marks_and_losses_match_tc_on_kernels_that_report_them";
    if !is_in_guest(test) {
        return;
    }
    network("");
    run("tc qdisc replace dev out root handle 1: tbf rate 5mbit burst 2000 limit 1000000");
    run("tc qdisc add dev in root handle 2: netem loss 50%");
    run("ip address add 10.78.0.1/24 dev in");
    run("ip neighbour add 10.78.0.2 lladdr 02:00:00:00:00:03 dev in nud permanent");
    for (marking, key) in [
        ("codel ecn target 1ms interval 5ms", "ecn_mark"),
        ("fq_codel ecn target 1ms interval 5ms", "ecn_mark"),
        ("pie ecn target 1ms tupdate 1ms", "ecn_mark"),
        ("red ecn limit 400000 min 3000 max 9000 avpkt 1500 burst 3 probability 0.5", "marked"),
    ] {
        run(&format!("tc qdisc replace dev out parent 1:1 handle 10: {marking}"));
        let forward =
            Qdisc { queue: name("out", "10:"), loss: Some(name("in", "2:")), policer: None, rates: Vec::new() };
        let mut host = Host::start(Qdiscs { forward: Some(forward), ..Qdiscs::default() });
        host.begin();
        send_packets_from("10.78.0.1:0", "10.78.0.2:9", PACKETS);
        send_packets(600);
        until("the queue is empty", || said()["qlen"] == 0);
        let (rows, ..) = host.stop();
        let all = run("tc -s -j qdisc show");
        let of = |handle: &str| statistics_of(&all, handle);
        let last = rows.last().expect("there are rows");
        assert_eq!(Some(last.marked_packets), of("10:")[key].as_u64(), "{marking}: {all}");
        assert_eq!(Some(last.lost_packets), of("2:")["drops"].as_u64());
        assert_eq!(Some(last.sent_packets), of("10:")["packets"].as_u64());
        // pie marks at random while its probability is small, so it may have marked nothing.
        let has_marked = last.marked_packets > 0 || marking.starts_with("pie");
        assert!(has_marked && last.lost_packets > 0, "{marking}: {all}");
        run("tc qdisc delete dev out parent 1:1");
    }
}

fn statistics_of(all: &str, handle: &str) -> Value {
    let all: Vec<Value> = serde_json::from_str(all).expect("tc prints JSON");
    all.into_iter().find(|qdisc| qdisc["handle"] == handle).expect("it is there")
}

#[test]
fn a_failed_command_ends_the_run_with_its_output() {
    if !prepare("diag::qdiscs::a_failed_command_ends_the_run_with_its_output", "") {
        return;
    }
    let mut host = Host::start(watch(0, "tc qdisc delete dev nowhere root"));
    host.begin();
    let HostEvent::Failed(error) = host.next() else { panic!("expected a failure") };
    assert_eq!(error.code, "command-failed");
    assert!(error.message.contains("`tc qdisc delete dev nowhere root`"), "{error}");
    assert!(error.message.contains("Cannot find device"), "{error}");
}

#[test]
fn a_missing_qdisc_is_named() {
    if !prepare("diag::qdiscs::a_missing_qdisc_is_named", "") {
        return;
    }
    for (interface, handle) in [("out", "7:"), ("nowhere", "1:")] {
        let forward = Some(Qdisc { queue: name(interface, handle), loss: None, policer: None, rates: Vec::new() });
        let mut host = Host::start(Qdiscs { forward, ..Qdiscs::default() });
        let HostEvent::Failed(error) = host.next() else { panic!("expected a failure") };
        assert_eq!(error.code, "no-qdisc");
        assert!(error.message.contains(&format!("interface {interface} has no queue discipline {handle}")), "{error}");
    }
}
