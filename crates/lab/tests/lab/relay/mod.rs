//! The relay between real hosts treats packets as the experiment specifies, and reports its measurements.

mod relay_path;

use relay_path::{PORT, Path, Program, RECEIVER, example, experiment, flow};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command as Process, Stdio};
use thalweg_lab::protocol::{HostEvent, Port, Role};
use thalweg_lab::relay::capture;
use thalweg_link::{Link, Sent};
use thalweg_plan::plan::Traces;
use thalweg_traffic::Randomness;
use thalweg_units::{Bytes, Span, Time};

/// Address of the echo program.
const ECHO: &str = "10.77.0.2:5001";
const MS: u64 = 1_000_000;
/// Maximum lateness of the earliest of many packets on a shared machine.
const TOLERANCE_NS: u64 = 10 * MS;

/// Sends packets; returns the numbers and delays of the first `expected` arrivals.
fn send(path: &mut Path, (count, size, gap_us): (u64, u64, u64), expected: usize) -> (Vec<(u64, u64)>, Program) {
    let receiver = path.receiver(&format!("receive {PORT}"));
    path.traffic("sender", &format!("send {RECEIVER} {count} {size} {gap_us}")).finish();
    let arrivals = (0..expected).map(|_| arrival(&receiver.line())).collect();
    (arrivals, receiver)
}

fn arrival(line: &str) -> (u64, u64) {
    let (number, way_ns) = line.split_once(' ').expect("two numbers");
    (number.parse().expect("a number"), way_ns.parse().expect("nanoseconds"))
}

fn captured(file: &std::path::Path) -> Vec<capture::Captured> {
    let mut packets = Vec::new();
    capture::read(file, &mut |packet| packets.push(packet)).expect("it is a capture");
    packets
}

#[test]
fn packets_arrive_after_the_delay_of_each_direction_and_in_order() {
    let experiment = experiment(|_| ());
    let Some(mut path) = Path::start(&experiment, None) else { return };
    let (arrivals, receiver) = send(&mut path, (200, 1500, 1000), 200);
    assert!(arrivals.iter().map(|(number, _)| *number).eq(0..200), "{arrivals:?}");
    let ways_ns: Vec<u64> = arrivals.iter().map(|(_, way_ns)| *way_ns).collect();
    assert!(ways_ns.iter().all(|way_ns| *way_ns >= 20 * MS), "{ways_ns:?}");
    assert!(ways_ns.iter().any(|way_ns| *way_ns < 20 * MS + TOLERANCE_NS), "{ways_ns:?}");
    let echo = path.receiver(&format!("echo {}", PORT + 1));
    let rtts_ns = pings(&mut path, "sender");
    assert!(rtts_ns.iter().all(|rtt_ns| *rtt_ns >= 30 * MS), "{rtts_ns:?}");
    assert!(rtts_ns.iter().any(|rtt_ns| *rtt_ns < 30 * MS + TOLERANCE_NS), "{rtts_ns:?}");
    echo.end();

    let (report, _) = path.stop(receiver);
    assert_eq!(report.measured["relay_dropped_packets"], 0.0);
    assert!(!report.untrustworthy.iter().any(|doubt| doubt.contains("dropped")), "{:?}", report.untrustworthy);
    assert_eq!(report.measured["relay_packets"], 240.0, "200 packets, and 20 pings each way");
    for key in ["relay_lateness_p50_us", "relay_lateness_p99_us", "relay_lateness_p999_us", "relay_lateness_worst_us"] {
        assert!(report.measured[key] > 0.0, "{key}: {:?}", report.measured);
    }
    for (rows, sent) in [(&report.forward, (220, 200 * 1500 + 20 * 100)), (&report.reverse, (20, 20 * 100))] {
        let last = rows.last().expect("there are rows");
        assert_eq!((last.sent_packets, last.sent_bytes), sent);
        assert_eq!(rows[0].t_us, 0);
        assert!(rows[..rows.len() - 1].iter().zip(0..).all(|(row, number)| row.t_us == number * 10_000));
        assert!(rows.windows(2).all(|pair| pair[0].t_us < pair[1].t_us));
    }
}

fn pings(path: &mut Path, from: &str) -> Vec<u64> {
    let lines = path.traffic(from, &format!("ping {ECHO} 20")).finish();
    lines.iter().map(|line| line.parse().expect("nanoseconds")).collect()
}

#[test]
fn the_same_packets_are_lost_as_in_the_simulator() {
    const PACKETS: u64 = 1000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("packets.pcapng");
    let experiment = experiment(|value| {
        value["forward"]["loss"] =
            json!({ "kind": "gilbert_elliott", "p": 0.02, "r": 0.3, "loss_bad": 0.8, "loss_good": 0.01 });
        value["sample_interval_ns"] = json!(0);
    });
    let mut link = Link::new(&experiment.forward, &Traces::default(), 0).expect("a link that can be");
    let mut stream = Randomness::new(&experiment).forward;
    let mut offer = |number| link.send(Time::ZERO, number, Bytes(200), Span::ZERO, &mut stream);
    let survivors: Vec<u64> = (0..PACKETS).filter(|number| offer(*number) == Sent::Queued).collect();
    assert!((20..500).contains(&(PACKETS as usize - survivors.len())), "{}", survivors.len());

    let Some(mut path) = Path::start(&experiment, Some(&file)) else { return };
    let (arrivals, receiver) = send(&mut path, (PACKETS, 200, 200), survivors.len());
    let (report, more) = path.stop(receiver);
    assert!(more.is_empty(), "more packets came than survive in the simulator");
    assert!(arrivals.iter().map(|(number, _)| *number).eq(survivors.iter().copied()));
    assert_eq!((report.forward.len(), report.reverse.len()), (1, 1), "without samples there is a row at the end");
    assert_eq!(report.forward[0].lost_packets, PACKETS - survivors.len() as u64);

    let mut packets = captured(&file);
    packets.retain(|packet| packet.is_forward);
    assert!(packets.iter().map(|packet| packet.number).eq(0..PACKETS));
    let queued = packets.iter().filter(|packet| packet.fate == "queued").map(|packet| packet.number);
    assert!(queued.eq(survivors));
    assert_eq!(report.measured["relay_capture_lost_packets"], 0.0);
}

#[test]
fn packets_that_do_not_fit_into_the_buffer_are_dropped_and_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("packets.pcapng");
    // A packet takes 60 ms, so that all 50 arrive while the first is being sent.
    let experiment = experiment(|value| {
        value["forward"]["capacity"] = json!({ "kind": "steps", "steps": [{ "at_ns": 0, "rate_bps": 200_000 }] });
        value["forward"]["buffer"] = json!({ "kind": "bytes", "bytes": 10 * 1500 + 700 });
    });
    let Some(mut path) = Path::start(&experiment, Some(&file)) else { return };
    let (arrivals, receiver) = send(&mut path, (50, 1500, 0), 11);
    let (report, more) = path.stop(receiver);
    assert_eq!(more, [""; 0]);
    assert!(arrivals.iter().map(|(number, _)| *number).eq(0..11), "{arrivals:?}");
    for (number, way_ns) in &arrivals {
        // All were sent during the transmission of the first, and each waited for the packets before it.
        assert!(*way_ns >= 20 * MS + number * 60 * MS, "{arrivals:?}");
    }
    let last = report.forward.last().expect("there are rows");
    assert_eq!((last.dropped_packets, last.sent_packets, last.lost_packets), (39, 11, 0));
    // Capacity counts from the start, before the first packet arrived.
    let expected_bytes = last.t_us * 200_000 / 8_000_000;
    assert!(last.capacity_bytes.is_some_and(|bytes| bytes.abs_diff(expected_bytes) <= 1), "{last:?}");
    assert_eq!(report.forward.iter().map(|row| row.backlog_bytes).max(), Some(15_000));

    let mut forward = captured(&file);
    forward.retain(|packet| packet.is_forward);
    let backlogs: Vec<u64> = forward.iter().map(|packet| packet.backlog_bytes.0).collect();
    let expected: Vec<u64> = (0..50u64).map(|number| number.min(10) * 1500).collect();
    assert_eq!(backlogs, expected);
    assert_eq!(forward.iter().filter(|packet| packet.fate == "dropped").count(), 39);
    assert!(forward.iter().all(|packet| packet.size_bytes == Bytes(1500)));
    assert!(forward.windows(2).all(|pair| pair[0].t <= pair[1].t));
}

#[test]
fn extra_rtt_affects_only_its_own_flows() {
    let experiment = experiment(|value| value["flows"] = json!([flow("near", 0), flow("far", 61 * MS)]));
    let Some(mut path) = Path::start(&experiment, None) else { return };
    let echo = path.receiver(&format!("echo {}", PORT + 1));
    let near_ns = pings(&mut path, "sender");
    let far_ns = pings(&mut path, "sender-2");
    path.stop(echo);
    for (rtts_ns, expected_ns) in [(near_ns, 30 * MS), (far_ns, 91 * MS)] {
        let least_ns = rtts_ns.into_iter().min().expect("there were pings");
        assert!((expected_ns..expected_ns + TOLERANCE_NS).contains(&least_ns), "{least_ns} {expected_ns}");
    }
}

#[test]
fn random_delay_of_a_host_delays_its_packets_and_keeps_their_order() {
    let experiment = experiment(|value| value["hosts"]["sender"]["delay_jitter_ns"] = json!(40 * MS));
    let Some(mut path) = Path::start(&experiment, None) else { return };
    let (arrivals, receiver) = send(&mut path, (300, 100, 1000), 300);
    path.stop(receiver);
    assert!(arrivals.iter().map(|(number, _)| *number).eq(0..300));
    let delays_ns = || arrivals.iter().map(|(_, way_ns)| way_ns - 20 * MS);
    let (least_ns, mean_ns) = (delays_ns().min().expect("packets"), delays_ns().sum::<u64>() / 300);
    // Packets wait for earlier ones, so the mean is above half of the maximum.
    assert!(mean_ns > 20 * MS && least_ns < 40 * MS, "mean {mean_ns}, least {least_ns}");
}

#[test]
fn duplicates_arrive_twice() {
    let experiment = experiment(|value| value["forward"]["duplicate"] = json!(1.0));
    let Some(mut path) = Path::start(&experiment, None) else { return };
    let (arrivals, receiver) = send(&mut path, (100, 300, 100), 200);
    let (report, more) = path.stop(receiver);
    assert_eq!(more, [""; 0]);
    assert!(arrivals.iter().map(|(number, _)| *number).eq((0..100).flat_map(|number| [number, number])));
    assert_eq!(report.forward.last().map(|row| row.sent_packets), Some(200));
}

#[test]
fn segments_pass_unsplit_with_offloads_and_as_packets_without() {
    const TRANSFER_BYTES: u64 = 3_000_000;
    for offloads in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("packets.pcapng");
        let experiment = experiment(|value| value["engine"]["offloads"] = json!(offloads));
        let Some(mut path) = Path::start(&experiment, Some(&file)) else { return };
        let sink = path.receiver(&format!("sink {PORT}"));
        path.traffic("sender", &format!("source {RECEIVER} {TRANSFER_BYTES}")).finish();
        assert_eq!(sink.line(), TRANSFER_BYTES.to_string());
        let (report, _) = path.stop(sink);
        assert_eq!(report.measured["relay_dropped_packets"], 0.0, "{:?}", report.measured);
        let packets = captured(&file);
        let largest = packets.iter().map(|packet| packet.size_bytes.0).max();
        let carried: u64 = packets.iter().filter(|packet| packet.is_forward).map(|packet| packet.size_bytes.0).sum();
        assert!(carried > TRANSFER_BYTES, "{carried}");
        if offloads {
            // The sizes depend on the machine's load.
            assert!(largest > Some(1500), "{largest:?}");
        } else {
            assert_eq!(largest, Some(1500));
        }
    }
}

#[test]
fn packets_dropped_by_the_kernel_are_counted_and_make_the_run_untrustworthy() {
    // More packets than a ring of the relay holds.
    const PACKETS: u64 = 40_000;
    let experiment = experiment(|_| ());
    let Some(mut path) = Path::start(&experiment, None) else { return };
    let echo = path.receiver(&format!("echo {}", PORT + 1));
    // The replies show that the relay has started.
    pings(&mut path, "sender");
    path.freeze();
    path.traffic("sender", &format!("send {RECEIVER} {PACKETS} 100 0")).finish();
    path.thaw();
    // These packets follow the buffered ones. The first may be dropped too, if the relay has not run yet.
    let back = path.traffic("sender", &format!("ping {ECHO} 20")).finish();
    let again = back.iter().filter(|line| *line == "lost").count() as u64;
    let (report, _) = path.stop(echo);
    let dropped = report.measured["relay_dropped_packets"];
    assert!(dropped > 0.0, "{:?}", report.measured);
    assert_eq!(report.forward.last().map(|row| row.sent_packets as f64 + dropped), Some((PACKETS + 40 + again) as f64));
    let expected = format!("the kernel dropped {dropped} packets between the hosts and the relay");
    assert!(report.untrustworthy.iter().any(|doubt| doubt.starts_with(&expected)), "{:?}", report.untrustworthy);
    assert!(
        report.untrustworthy.iter().any(|doubt| doubt.starts_with("the relay paused for")),
        "{:?}",
        report.untrustworthy
    );
}

#[test]
fn an_unprivileged_user_gets_the_same_path() {
    if std::env::var_os("THALWEG_AS_NOBODY").is_some() || !is_root() {
        // The other tests already run as an unprivileged user.
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    open(folder.path());
    let test = std::env::current_exe().expect("a test has a file");
    for file in [test.clone(), example("host"), example("relay_traffic")] {
        let copy = folder.path().join(file.file_name().expect("it has a name"));
        std::fs::copy(file, &copy).expect("there is room");
        open(&copy);
    }
    let mut command = as_unprivileged(folder.path().join(test.file_name().expect("it has a name")));
    command.env("THALWEG_AS_NOBODY", "1").current_dir("/").args(["--exact", "--nocapture"]);
    command.arg("relay::packets_arrive_after_the_delay_of_each_direction_and_in_order");
    let output = command.output().expect("setpriv is installed");
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
fn without_packet_sockets_the_error_names_the_missing_capability() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let host = folder.path().join("host");
    std::fs::copy(example("host"), &host).expect("there is room");
    for path in [folder.path(), &host] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let mut command = if is_root() { as_unprivileged(host) } else { Process::new(host) };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut relay = Program::of(command.spawn().expect("it starts"));
    relay.configure(&experiment(|_| ()), relay_of("lo"));
    let HostEvent::Failed(error) = relay.event() else { panic!("it carries packets") };
    assert_eq!(error.code, "no-packet-socket");
    assert!(error.hint.contains("CAP_NET_RAW"), "{error}");
    relay.end();
}

#[test]
fn a_missing_interface_is_named() {
    if !is_root() {
        assert!(std::env::var_os("THALWEG_CI").is_none(), "packet sockets need root here");
        eprintln!("cannot run: packet sockets outside of namespaces need root");
        return;
    }
    let mut command = Process::new(example("host"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut relay = Program::of(command.spawn().expect("it starts"));
    relay.configure(&experiment(|_| ()), relay_of("nowhere7"));
    let HostEvent::Failed(error) = relay.event() else { panic!("it carries packets") };
    assert_eq!(error.code, "no-interface");
    assert!(error.message.contains("nowhere7"), "{error}");
    relay.end();
}

fn relay_of(interface: &str) -> Role {
    let port = |host: &str| Port {
        interface: interface.to_owned(),
        address: [10, 77, 0, 2].into(),
        mac: [2, 0, 0, 0, 0, 1],
        host: host.to_owned(),
        extra_rtt: Span::ZERO,
    };
    Role::Relay { senders: vec![port("sender")], receiver: port("receiver"), traces: Traces::default(), capture: None }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|us| std::os::unix::fs::MetadataExt::uid(&us) == 0)
}

fn as_unprivileged(program: std::path::PathBuf) -> Process {
    let mut command = Process::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
    command
}
