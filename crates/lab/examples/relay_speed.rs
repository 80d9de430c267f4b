//! Measures the relay: its throughput, and its lateness.
//!
//! ```text
//! cargo build --release -p thalweg-lab --examples
//! target/release/examples/relay_speed RATE_MBPS SECONDS [reno|cubic|bbr] [fifo]     as root, or as an ordinary user
//! ```
//!
//! It builds the network of an experiment, without offloads, and runs iperf3 through it for SECONDS, after a warm-up of
//! one second. `fifo` gives the relay SCHED_FIFO, which needs root. It prints the relay's event `configured`, iperf3's
//! goodput and retransmits, and the relay's measurements.

use serde_json::{Value, json};
use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;
use thalweg_lab::net::{LinkKind, Network};
use thalweg_lab::protocol::{Command, Configuration, HostEvent, Role};
use thalweg_plan::plan::Experiment;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rate_mbps, seconds, ..] = &arguments[..] else {
        return Err("expected: RATE_MBPS SECONDS [reno|cubic|bbr] [fifo]".into());
    };
    let rate_mbps: u64 = rate_mbps.parse()?;
    let cc = arguments.get(2).map_or("cubic", String::as_str);
    let is_realtime = arguments.get(3).is_some_and(|word| word == "fifo");
    let experiment = experiment(rate_mbps * 1_000_000)?;

    let mut network = Network::build(&experiment, LinkKind::Relay)?;
    let (senders, receiver) = network.relay_ports();
    let host: OsString = std::env::current_exe()?.with_file_name("host").into();
    let mut relay = network.spawn("router", &[host], is_realtime)?;
    let mut events = BufReader::new(relay.stdout.take().expect("it is a pipe")).lines();
    let role = Role::Relay { senders, receiver, traces: Default::default(), capture: None };
    let configuration = Configuration { sysctls: Default::default(), experiment, role };
    tell(&mut relay, &Command::Configure(Box::new(configuration)))?;
    println!("{}", events.next().ok_or("the relay ended")??);
    tell(&mut relay, &Command::Start { at_monotonic_ns: None })?;

    let words = |text: &str| -> Vec<OsString> { text.split_whitespace().map(OsString::from).collect() };
    let mut server = network.spawn("receiver", &words("taskset -c 0 iperf3 -s -1 -J --forceflush"), false)?;
    // iperf3 does not report when it is ready.
    std::thread::sleep(Duration::from_millis(500));
    let command = format!("taskset -c 0 iperf3 -c 10.77.0.2 -J -t {seconds} -O 1 -C {cc}");
    let mut client = network.spawn("sender", &words(&command), false)?;
    let mut text = String::new();
    client.stdout.take().expect("it is a pipe").read_to_string(&mut text)?;
    client.wait()?;
    let _ = server.kill();
    server.wait()?;
    tell(&mut relay, &Command::Stop)?;
    let stopped = events.map_while(Result::ok).find_map(|line| match serde_json::from_str(&line) {
        Ok(HostEvent::Stopped { measured, untrustworthy }) => Some((measured, untrustworthy)),
        _ => None,
    });
    drop(relay.stdin.take());
    relay.wait()?;
    network.close()?;

    let result: Value = serde_json::from_str(&text)?;
    let goodput_bps = result["end"]["sum_received"]["bits_per_second"].as_f64().ok_or(text)?;
    // A packet of 1500 bytes has 1448 bytes of data.
    println!(
        "goodput {:.0} Mbit/s, of IP packets {:.0} Mbit/s",
        goodput_bps / 1e6,
        goodput_bps * 1500.0 / 1448.0 / 1e6
    );
    println!("retransmits {}", result["end"]["sum_sent"]["retransmits"]);
    let (measured, untrustworthy) = stopped.ok_or("the relay did not stop")?;
    println!("{}", json!({ "measured": measured, "untrustworthy": untrustworthy }));
    Ok(())
}

fn tell(host: &mut Child, command: &Command) -> Result<(), Box<dyn Error>> {
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    Ok(host.stdin.as_mut().expect("it is a pipe").write_all(&line)?)
}

fn experiment(rate_bps: u64) -> Result<Experiment, serde_json::Error> {
    let host = json!({ "sndbuf_max_bytes": 33_554_432, "rcvbuf_max_bytes": 33_554_432, "delay_jitter_ns": 0 });
    let link = |capacity: Value| {
        json!({
            "capacity": capacity, "buffer": { "kind": "packets", "packets": 1000 }, "queue": { "kind": "fifo" },
            "loss": { "kind": "bernoulli", "ratio": 0.0 }, "duplicate": 0.0, "delay_ns": 5_000_000, "jitter_ns": 0,
            "reorder": 0.0, "reorder_delay_ns": 0
        })
    };
    serde_json::from_value(json!({
        "experiment": 0, "repetition": 0, "sweep": {}, "seed": 1, "duration_ns": null, "sample_interval_ns": 10_000_000,
        "start_jitter_ns": 0, "rtt_ns": 10_000_000,
        "forward": link(json!({ "kind": "steps", "steps": [{ "at_ns": 0, "rate_bps": rate_bps }] })),
        "reverse": link(json!({ "kind": "unlimited" })),
        "hosts": { "sender": host, "receiver": host },
        "flows": [{
            "name": "bulk", "cc": "cubic", "cc_params": {}, "start_ns": 0, "stop_ns": null, "load": { "kind": "unlimited" },
            "repeat": { "kind": "once" }, "count": 1, "extra_rtt_ns": 0, "host": "sender"
        }],
        "background": [],
        "engine": { "link": "relay", "traffic": "builtin", "offloads": false, "record": false }
    }))
}
