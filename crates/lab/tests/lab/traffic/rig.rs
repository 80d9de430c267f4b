//! Two network namespaces joined by a pair of interfaces, and host processes in them.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use thalweg_lab::clock::monotonic_ns;
use thalweg_lab::protocol::{self, Configuration, FlowReport, HostEvent, Outgoing, Role, SampleReport, StateReport};
use thalweg_lab::stage::HostReport;
use thalweg_plan::plan::Experiment;

/// Timeout of waits.
const PATIENCE: Duration = Duration::from_secs(60);

const SENDER: &str = "10.77.1.2";
const RECEIVER: &str = "10.77.0.2";
pub const PORT: u16 = 5201;

/// Serializes the tests, because they share the processors and some compare times.
static TURN: Mutex<()> = Mutex::new(());

/// Two connected network namespaces.
pub struct Rig {
    sender: Namespace,
    receiver: Namespace,
    _turn: MutexGuard<'static, ()>,
}

struct Namespace {
    holder: Child,
    /// Command prefix that enters the namespace.
    enter: Vec<String>,
}

impl Rig {
    /// Creates both namespaces. Returns `None` and prints the reason if the machine does not permit it.
    pub fn new() -> Option<Rig> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_root = rustix::process::geteuid().is_root();
        let user: &[&str] = if is_root { &[] } else { &["--user", "--map-root-user"] };
        let Some(sender) = Namespace::new("unshare", &[user, &["--net", "cat"]].concat(), is_root) else {
            return skip("this user may not make network namespaces (`sysctl user.max_net_namespaces`)");
        };
        let mut enter = sender.enter.clone();
        enter.retain(|word| word != "--net");
        let receiver = Namespace::new(&enter[0], &inside(&enter, &["unshare", "--net", "cat"]), is_root)
            .expect("a second namespace");
        let rig = Rig { sender, receiver, _turn: turn };
        let other = rig.receiver.holder.id().to_string();
        rig.sender.run(&format!("ip link add eth0 type veth peer name eth0 netns {other}"));
        for (namespace, address, peer) in [(&rig.sender, SENDER, RECEIVER), (&rig.receiver, RECEIVER, SENDER)] {
            namespace.run(&format!("ip addr add {address} peer {peer} dev eth0"));
            namespace.run("ip link set eth0 up");
        }
        Some(rig)
    }

    /// Limits the rate of the sender's interface. Returns `None` and prints the reason if the kernel cannot.
    pub fn limit_rate(&self, rate: &str) -> Option<()> {
        let limit = format!("tc qdisc add dev eth0 root tbf rate {rate} burst 3000 limit 1000000");
        if !self.sender.try_run(&limit) {
            return skip("the queue discipline tbf is missing");
        }
        Some(())
    }

    /// Disables the path.
    pub fn cut(&self) {
        self.receiver.run("ip link set eth0 down");
    }

    /// Returns the sender's connections, as `ss` lists them, except those in TIME-WAIT.
    pub fn connections_left(&self) -> String {
        let list = self.sender.command(&["ss", "-tnH", "state", "connected", "exclude", "time-wait"]).output();
        String::from_utf8_lossy(&list.expect("ss of iproute2").stdout).into_owned()
    }

    /// Starts a receiving host.
    pub fn receiver(&self, experiment: &Experiment) -> Host {
        let receives = Some((0..experiment.flows.len()).collect());
        let role = Role::End { host: "receiver".to_owned(), sends: Vec::new(), background: None, receives, port: PORT };
        self.receiver.host(experiment, role)
    }

    /// Starts a host that sends these flows.
    pub fn sender(&self, experiment: &Experiment, flows: &[usize]) -> Host {
        self.sender.host(experiment, Self::role(flows, !experiment.background.is_empty()))
    }

    /// Returns the error of a host that rejects these flows.
    pub fn refusal(&self, experiment: &Experiment) -> thalweg_lab::Error {
        let flows: Vec<usize> = (0..experiment.flows.len()).collect();
        let mut host = Host::spawn(&self.sender);
        host.configure(experiment, Self::role(&flows, false));
        match host.next() {
            HostEvent::Failed(error) => error,
            other => panic!("expected a failure, found {other:?}"),
        }
    }

    fn role(flows: &[usize], background: bool) -> Role {
        let to = RECEIVER.parse().unwrap();
        let sends = flows.iter().map(|flow| Outgoing { flow: *flow, to }).collect();
        Role::End { host: "sender".to_owned(), sends, background: background.then_some(to), receives: None, port: PORT }
    }

    /// Runs an experiment on both hosts.
    pub fn run(&self, experiment: &Experiment) -> (Outcome, HostReport) {
        let mut receiver = self.receiver(experiment);
        let flows: Vec<usize> = (0..experiment.flows.len()).collect();
        let mut sender = self.sender(experiment, &flows);
        receiver.start();
        sender.start();
        sender.wait_until_over(experiment);
        let outcome = sender.stop();
        (outcome, receiver.stop().stopped)
    }
}

impl Namespace {
    fn new(program: &str, arguments: &[impl AsRef<std::ffi::OsStr>], is_root: bool) -> Option<Namespace> {
        let mut holder = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let id = holder.id().to_string();
        let user: &[&str] = if is_root { &[] } else { &["--user", "--preserve-credentials"] };
        // The namespace exists once the holder has become `cat`.
        let deadline = Instant::now() + PATIENCE;
        while fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim() != "cat" {
            if holder.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(Instant::now() < deadline, "no namespace after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(1));
        }
        let enter = [&["nsenter", "-t", &id], user, &["--net"]].concat();
        Some(Namespace { holder, enter: enter.into_iter().map(str::to_owned).collect() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.enter[0]);
        command.args(inside(&self.enter, words));
        command
    }

    fn try_run(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.command(&words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn run(&self, line: &str) {
        assert!(self.try_run(line), "failed: {line}");
    }

    fn host(&self, experiment: &Experiment, role: Role) -> Host {
        let mut host = Host::spawn(self);
        host.configure(experiment, role);
        match host.next() {
            HostEvent::Configured { .. } => host,
            other => panic!("expected to be configured, found {other:?}"),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn inside(enter: &[String], words: &[&str]) -> Vec<String> {
    enter[1..].iter().cloned().chain(["--".to_owned()]).chain(words.iter().map(|word| (*word).to_owned())).collect()
}

/// Reports why a test is skipped on this machine. In CI that is a failure.
pub fn skip<T>(why: &str) -> Option<T> {
    assert!(env::var("THALWEG_CI").as_deref() != Ok("1"), "this must run, but {why}");
    println!("not run: {why}");
    None
}

/// A host process.
pub struct Host {
    child: Child,
    input: Option<ChildStdin>,
    events: Receiver<HostEvent>,
    over: Vec<String>,
}

/// Report of a host after it was stopped.
#[derive(Debug, Default)]
pub struct Outcome {
    pub flows: Vec<FlowReport>,
    pub samples: Vec<SampleReport>,
    pub states: Vec<StateReport>,
    pub stopped: HostReport,
}

impl Host {
    fn spawn(namespace: &Namespace) -> Host {
        let mut command = namespace.command(&[host_binary().to_str().unwrap()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a host process");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                let event = serde_json::from_str(&line.unwrap()).expect("an event");
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Host { input: child.stdin.take(), child, events, over: Vec::new() }
    }

    pub fn send_command(&mut self, command: &protocol::Command) {
        let line = serde_json::to_string(command).unwrap();
        writeln!(self.input.as_mut().unwrap(), "{line}").expect("the host listens");
    }

    fn configure(&mut self, experiment: &Experiment, role: Role) {
        let configuration = Configuration { sysctls: [].into(), experiment: experiment.clone(), role };
        self.send_command(&protocol::Command::Configure(Box::new(configuration)));
    }

    pub fn start(&mut self) {
        self.send_command(&protocol::Command::Start { at_monotonic_ns: Some(monotonic_ns() + 20_000_000) });
    }

    fn next(&self) -> HostEvent {
        match self.events.recv_timeout(PATIENCE) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => panic!("the host has said nothing for {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the host has ended"),
        }
    }

    /// Waits until a flow is complete.
    pub fn wait_for(&mut self, flow: &str) {
        while !self.over.iter().any(|over| over == flow) {
            match self.next() {
                HostEvent::Over { flow } => self.over.push(flow),
                other => panic!("expected a flow to be over, found {other:?}"),
            }
        }
    }

    /// Waits until every flow is complete, or the experiment's duration has passed.
    pub fn wait_until_over(&mut self, experiment: &Experiment) {
        let Some(duration) = experiment.duration_ns else {
            return experiment.flows.iter().for_each(|flow| self.wait_for(&flow.name));
        };
        let end = Instant::now() + Duration::from_nanos(duration.0) + Duration::from_millis(50);
        while self.over.len() < experiment.flows.len() || experiment.flows.is_empty() {
            match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(HostEvent::Over { flow }) => self.over.push(flow),
                Ok(other) => panic!("expected a flow to be over, found {other:?}"),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => panic!("the host has ended"),
            }
        }
    }

    /// Stops the host; returns its report.
    pub fn stop(mut self) -> Outcome {
        self.send_command(&protocol::Command::Stop);
        let mut outcome = Outcome::default();
        loop {
            match self.next() {
                HostEvent::Over { .. } => {}
                HostEvent::Flow(row) => outcome.flows.push(*row),
                HostEvent::Sample(row) => outcome.samples.push(*row),
                HostEvent::State(row) => outcome.states.push(row),
                HostEvent::Stopped { measured, untrustworthy } => {
                    outcome.stopped = HostReport { measured, untrustworthy };
                    outcome.flows.sort_by_key(|row| (row.of, row.transfer));
                    return outcome;
                }
                other => panic!("expected rows, found {other:?}"),
            }
        }
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the standard input; returns whether the process then exited.
    pub fn ends_with_its_input(mut self) -> bool {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of the example `host`.
fn host_binary() -> PathBuf {
    let test = env::current_exe().expect("where this test is");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("target folder");
    let host = folder.join("examples/host");
    assert!(host.exists(), "{} is missing: `cargo build --example host -p thalweg-lab`", host.display());
    host
}
