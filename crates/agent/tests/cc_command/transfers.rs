//! Connections that use the built-in algorithms of the agent.

use crate::common::{Namespace, wait_until};
use crate::stage::Stage;
use rustix::process::{Resource, Rlimit, Signal};
use serde_json::Value;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

struct Transfer {
    receiver: Child,
    sender: Child,
}

const ORDINARY_USER: [&str; 4] = ["setpriv", "--reuid", "65534", "--clear-groups"];

impl Transfer {
    /// Starts an unprivileged sender with an algorithm.
    fn start(from: &Namespace, to: &Namespace, algorithm: &str) -> Transfer {
        let receiver = to.command(&["iperf3", "--server", "--one-off"]).stdout(Stdio::null()).spawn().expect("iperf3");
        wait_until("the receiver listens", || to.output(&["ss", "-Hltn", "sport", "=", "5201"]).contains("LISTEN"));
        let mut line = ORDINARY_USER.to_vec();
        line.extend(["iperf3", "--client", "10.9.8.2", "--congestion", algorithm, "--time", "600"]);
        let sender = from.command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("iperf3");
        Transfer { receiver, sender }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for child in [&mut self.sender, &mut self.receiver] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn count(algorithm: Option<&Value>, name: &str) -> u64 {
    algorithm.and_then(|status| status["counters"][name].as_u64()).unwrap_or_default()
}

fn choose(algorithm: &str) -> rustix::io::Result<()> {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    rustix::net::sockopt::set_tcp_congestion(&socket, algorithm)
}

fn socket_algorithms(namespace: &Namespace) -> String {
    namespace.output(&["ss", "-Htin", "state", "established", "dport", "=", "5201"])
}

/// Loads an algorithm, sends with it, and unloads it. Returns its entry in `cc status`; `None` if the test is skipped.
fn send_and_unload(algorithm: &str, settings: &[&str]) -> Option<Value> {
    let stage = Stage::new()?;
    let (sender, receiver) = Namespace::pair();
    let loader = stage.load_with(algorithm, settings);
    assert!(loader.said.contains(&format!("{algorithm}: registered")), "{}", loader.said);
    assert_eq!(count(stage.registered(algorithm).as_ref(), "flows_begun"), 0);

    let transfer = Transfer::start(&sender, &receiver, algorithm);
    wait_until("ACKs are counted", || count(stage.registered(algorithm).as_ref(), "acks") > 1000);
    let registered = stage.registered(algorithm);
    assert!(count(registered.as_ref(), "flows_begun") >= 1, "{registered:?}");
    assert_eq!(registered.as_ref().unwrap()["held_by"][0], loader.pid());
    assert!(socket_algorithms(&sender).contains(algorithm));

    drop(transfer);
    wait_until("the connections have ended", || {
        let now = stage.registered(algorithm);
        count(now.as_ref(), "flows_ended") == count(now.as_ref(), "flows_begun")
    });
    let (code, output) = loader.end(Signal::TERM);
    assert_eq!(code, Some(0));
    assert!(output.contains("unregistered"), "{output}");
    assert_eq!(stage.listed(algorithm), None);
    registered
}

#[test]
fn a_transfer_of_an_unprivileged_user_is_handled_and_counted() {
    if let Some(registered) = send_and_unload("bbr_cpu", &[]) {
        assert!(registered["counters"]["boosted_acks"].is_u64(), "{registered:?}");
    }
}

#[test]
fn bbr3_handles_and_counts_a_transfer() {
    if let Some(registered) = send_and_unload("bbr3", &[]) {
        assert!(registered["counters"]["boosted_acks"].is_null(), "it has no rule that could step in: {registered:?}");
        assert!(registered["rule"].is_null(), "{registered:?}");
    }
}

/// Connections over loopback, which the kernel has accepted, and the application has not.
struct Connections {
    clients: Vec<TcpStream>,
    /// Their backlogs hold the accepted sockets.
    listeners: Vec<OwnedFd>,
}

impl Connections {
    fn open(count: usize, algorithm: &str) -> Connections {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let limit = rustix::process::getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        rustix::process::setrlimit(Resource::Nofile, raised).expect("a limit for many sockets");
        let mut connections = Connections { clients: Vec::new(), listeners: Vec::new() };
        while connections.clients.len() < count {
            let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
            bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
            listen(&listener, i32::try_from(PER_LISTENER).unwrap()).expect("a listener");
            let address = SocketAddrV4::try_from(getsockname(&listener).expect("its address")).expect("IPv4");
            for _ in 0..PER_LISTENER.min(count - connections.clients.len()) {
                let client = TcpStream::connect(address).expect("a connection");
                rustix::net::sockopt::set_tcp_congestion(&client, algorithm).expect("the algorithm");
                connections.clients.push(client);
            }
            connections.listeners.push(listener);
        }
        connections.send(10_000);
        connections
    }

    fn send(&mut self, bytes: usize) {
        let data = vec![0; bytes];
        for client in &mut self.clients {
            client.write_all(&data).expect("it is buffered");
        }
    }
}

/// Connections in the backlog of a listener; the kernel limits it to net.core.somaxconn.
const PER_LISTENER: usize = 2_500;

#[test]
fn bbr3_handles_10000_connections_and_their_unloading() {
    const CONNECTIONS: usize = 10_000;
    let Some(stage) = Stage::new() else { return };
    let mut loader = stage.load("bbr3");
    let mut connections = Connections::open(CONNECTIONS, "bbr3");
    wait_until("every connection has an ACK", || {
        count(stage.registered("bbr3").as_ref(), "acks") >= CONNECTIONS as u64
    });
    assert_eq!(count(stage.registered("bbr3").as_ref(), "flows_begun"), CONNECTIONS as u64);

    assert_eq!(stage.agent(&["cc", "unload", "bbr3"]).code, Some(0));
    assert_eq!(loader.wait().0, Some(0), "the loader ends");
    let before = count(stage.leaving("bbr3").as_ref(), "acks");
    connections.send(1);
    wait_until("all of them send again", || {
        count(stage.leaving("bbr3").as_ref(), "acks") >= before + CONNECTIONS as u64
    });
    drop(connections);
    wait_until("nothing of it is left", || stage.leaving("bbr3").is_none());
}

#[test]
fn bbr3_accepts_the_rule_for_senders_on_a_shared_cpu() {
    for rule in ["paper", "schedule"] {
        if let Some(registered) = send_and_unload("bbr3", &[&format!("rule={rule}")]) {
            assert!(registered["counters"]["boosted_acks"].is_u64(), "{registered:?}");
            assert_eq!(registered["rule"], rule);
        }
    }
}

#[test]
fn bbr_with_parameters_handles_a_transfer_and_shows_them() {
    let of_bbr = ["probe_gain=1.5", "probe_clock=time", "probe_jitter=0.25", "loss_threshold=0.5"];
    for (algorithm, of_rule) in [("bbr_tuned", &[][..]), ("bbr_auto", &["auto_weight=0.5"])] {
        let settings = [&of_bbr, of_rule].concat();
        if let Some(registered) = send_and_unload(algorithm, &settings) {
            for (name, value) in settings.iter().map(|setting| setting.split_once('=').unwrap()) {
                assert_eq!(registered["parameters"][name], value, "{registered:?}");
            }
            assert!(registered["rule"].is_null(), "{registered:?}");
        }
    }
}

#[test]
fn bbr_with_default_parameters_handles_a_transfer() {
    if let Some(registered) = send_and_unload("bbr_tuned", &[]) {
        assert_eq!(registered["parameters"], serde_json::json!({}));
    }
}

#[test]
fn a_live_transfer_continues_when_its_algorithm_is_unloaded() {
    let Some(stage) = Stage::new() else { return };
    let (sender, receiver) = Namespace::pair();
    let mut loader = stage.load("bbr_cpu");
    let transfer = Transfer::start(&sender, &receiver, "bbr_cpu");
    wait_until("ACKs are counted", || count(stage.registered("bbr_cpu").as_ref(), "acks") > 1000);
    assert_eq!(choose("bbr_cpu"), Ok(()));

    let done = stage.agent(&["cc", "unload", "bbr_cpu"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("until"), "it says that connections still use it: {}", done.out);
    assert_eq!(loader.wait().0, Some(0), "the loader ends");
    assert!(stage.registered("bbr_cpu").is_none());
    let before = count(stage.leaving("bbr_cpu").as_ref(), "acks");
    assert!(before > 1000);
    wait_until("the transfer has gone on", || count(stage.leaving("bbr_cpu").as_ref(), "acks") > before + 1000);
    assert!(socket_algorithms(&sender).contains("bbr_cpu"));
    assert_eq!(choose("bbr_cpu"), Err(rustix::io::Errno::NOENT), "new connections must not get it");

    drop(transfer);
    wait_until("nothing of it is left", || stage.leaving("bbr_cpu").is_none());
}

#[test]
fn the_system_default_does_not_keep_an_unloaded_algorithm() {
    let Some(stage) = Stage::new() else { return };
    let (here, _) = Namespace::pair();
    let before = setting(&here);
    let loader = stage.load_in(&here, "bbr_cpu");
    here.output(&["sysctl", "--write", "net.ipv4.tcp_congestion_control=bbr_cpu"]);
    assert_eq!(setting(&here), "bbr_cpu");
    let (code, output) = loader.end(Signal::INT);
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(setting(&here), before, "{output}");
    assert!(output.contains(&format!("net.ipv4.tcp_congestion_control: changed from bbr_cpu to {before}")), "{output}");
}

fn setting(namespace: &Namespace) -> String {
    namespace.output(&["sysctl", "--values", "net.ipv4.tcp_congestion_control"]).trim().to_owned()
}
