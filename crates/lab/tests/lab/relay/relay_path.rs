//! A network with the relay in its middle, for tests.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path as FilePath, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use thalweg_lab::clock::monotonic_ns;
use thalweg_lab::net::{LinkKind, Network};
use thalweg_lab::protocol::{Command, Configuration, HostEvent, Role};
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::QueueRow;

/// Timeout of waits.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Port of the receiver's programs.
pub const PORT: u16 = 5000;
/// Address and port of the receiver's programs.
pub const RECEIVER: &str = "10.77.0.2:5000";

/// A network with a running relay.
pub struct Path {
    network: Network,
    relay: Program,
}

/// The final report of a relay.
#[derive(Debug)]
pub struct RelayReports {
    pub forward: Vec<QueueRow>,
    pub reverse: Vec<QueueRow>,
    pub measured: BTreeMap<String, f64>,
    pub untrustworthy: Vec<String>,
}

/// A process whose output is read line by line.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
}

/// Returns an experiment without limits and loss, which `change` modifies.
pub fn experiment(change: impl FnOnce(&mut Value)) -> Experiment {
    let host = json!({ "sndbuf_max_bytes": 4_000_000, "rcvbuf_max_bytes": 4_000_000, "delay_jitter_ns": 0 });
    let link = |delay_ns: u64| {
        json!({
            "capacity": { "kind": "unlimited" }, "buffer": { "kind": "packets", "packets": 100_000 },
            "queue": { "kind": "fifo" }, "loss": { "kind": "bernoulli", "ratio": 0.0 }, "duplicate": 0.0,
            "delay_ns": delay_ns, "jitter_ns": 0, "reorder": 0.0, "reorder_delay_ns": 0
        })
    };
    let mut value = json!({
        "experiment": 0, "repetition": 0, "sweep": {}, "seed": 42, "duration_ns": null, "sample_interval_ns": 10_000_000,
        "start_jitter_ns": 0, "rtt_ns": 30_000_000, "forward": link(20_000_000), "reverse": link(10_000_000),
        "hosts": { "sender": host, "receiver": host }, "flows": [flow("flow", 0)], "background": [],
        "engine": { "link": "relay", "traffic": "builtin", "offloads": false, "record": false }
    });
    change(&mut value);
    serde_json::from_value(value).expect("it is an experiment")
}

pub fn flow(name: &str, extra_rtt_ns: u64) -> Value {
    json!({
        "name": name, "cc": "cubic", "cc_params": {}, "start_ns": 0, "stop_ns": null, "load": { "kind": "unlimited" },
        "repeat": { "kind": "once" }, "count": 1, "extra_rtt_ns": extra_rtt_ns, "host": "sender"
    })
}

/// Returns the path of one of this crate's examples.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let beside = test.with_file_name(name);
    let built = test.parent().and_then(FilePath::parent).map(|target| target.join("examples").join(name));
    let path = if beside.exists() { beside } else { built.expect("a test lies in target/*/deps") };
    assert!(path.exists(), "{} is not built; type: cargo build --release -p thalweg-lab --examples", path.display());
    path
}

impl Path {
    /// Builds the network and starts the relay. Returns `None` and prints the reason if this machine cannot.
    pub fn start(experiment: &Experiment, capture: Option<&FilePath>) -> Option<Path> {
        let mut network = match Network::build(experiment, LinkKind::Relay) {
            Ok(network) => network,
            Err(error) => {
                assert!(std::env::var_os("THALWEG_CI").is_none(), "{error}");
                eprintln!("cannot run: {error}");
                return None;
            }
        };
        let (senders, receiver) = network.relay_ports();
        let capture = capture.map(FilePath::to_owned);
        let role = Role::Relay { senders, receiver, traces: Traces::default(), capture };
        let mut relay = Program::of(network.spawn("router", &[example("host").into()], false).expect("it starts"));
        relay.configure(experiment, role);
        assert!(matches!(relay.event(), HostEvent::Configured { .. }));
        relay.send_command(&Command::Start { at_monotonic_ns: Some(monotonic_ns()) });
        Some(Path { network, relay })
    }

    /// Starts `relay_traffic` in a namespace.
    pub fn traffic(&mut self, namespace: &str, arguments: &str) -> Program {
        let mut command = vec![OsString::from(example("relay_traffic"))];
        command.extend(arguments.split_whitespace().map(OsString::from));
        Program::of(self.network.spawn(namespace, &command, false).expect("it starts"))
    }

    /// Starts `relay_traffic` at the receiver, and waits until it is ready.
    pub fn receiver(&mut self, arguments: &str) -> Program {
        let program = self.traffic("receiver", arguments);
        assert_eq!(program.line(), "ready");
        program
    }

    /// Suspends the relay.
    pub fn freeze(&self) {
        self.relay.signal(Signal::STOP);
    }

    /// Resumes the relay.
    pub fn thaw(&self) {
        self.relay.signal(Signal::CONT);
    }

    /// Stops the relay and the receiver's program, and removes the network. Returns the relay's report, and the unread
    /// lines of the program's output.
    pub fn stop(mut self, receiver: Program) -> (RelayReports, Vec<String>) {
        self.relay.send_command(&Command::Stop);
        let (mut forward, mut reverse) = (Vec::new(), Vec::new());
        let (measured, untrustworthy) = loop {
            match self.relay.event() {
                HostEvent::Queue(report) if report.is_forward => forward.push(report.row(0, 0)),
                HostEvent::Queue(report) => reverse.push(report.row(0, 0)),
                HostEvent::Stopped { measured, untrustworthy } => break (measured, untrustworthy),
                other => panic!("{other:?}"),
            }
        };
        self.relay.end();
        let output = receiver.end();
        self.network.close().expect("nothing is left");
        (RelayReports { forward, reverse, measured, untrustworthy }, output)
    }
}

impl Program {
    pub fn of(mut child: Child) -> Program {
        let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Program { child, lines }
    }

    /// Returns the next line of output.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("another line")
    }

    /// Returns the next event of a host.
    pub fn event(&self) -> HostEvent {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub fn configure(&mut self, experiment: &Experiment, role: Role) {
        let configuration = Configuration { sysctls: BTreeMap::new(), experiment: experiment.clone(), role };
        self.send_command(&Command::Configure(Box::new(configuration)));
    }

    pub fn send_command(&mut self, command: &Command) {
        let mut line = serde_json::to_vec(command).expect("commands are JSON");
        line.push(b'\n');
        self.child.stdin.as_mut().expect("it is a pipe").write_all(&line).expect("it listens");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
    }

    /// Waits for the exit, which must be successful; returns the unread lines of output.
    pub fn finish(mut self) -> Vec<String> {
        let output = std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect();
        assert!(self.child.wait().expect("it is a child").success());
        output
    }

    /// Ends the process by closing its standard input; returns the unread lines of output.
    pub fn end(mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let output = std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect();
        self.child.wait().expect("it is a child");
        output
    }
}
