//! Samples of real connections by `live`.

use super::namespace::enter;
use crate::network_support::cannot_run;
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;
use thalweg_lab::live::{Live, Verdict, look};

/// Returns a sample of this machine, taken while a connection sends, and the connection's local address.
fn observe_sender(from: IpAddr, algorithm: &str) -> (Live, String) {
    let listener = TcpListener::bind((from, 0)).expect("loopback is up");
    let mut sender = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("the listener is open");
    let (mut receiver, _) = listener.accept().expect("a client has connected");
    set_tcp_congestion(&sender, algorithm).expect("the kernel has it");
    let local = sender.local_addr().expect("it is connected").to_string();
    let over = sender.try_clone().expect("a second handle");
    let live = std::thread::scope(|scope| {
        scope.spawn(move || {
            let bytes = [7; 1 << 16];
            while sender.write_all(&bytes).is_ok() {}
        });
        scope.spawn(move || {
            let mut bytes = [0; 1 << 16];
            while receiver.read(&mut bytes).is_ok_and(|read| read > 0) {}
        });
        let live = look(Duration::from_millis(500)).expect("the kernel tells");
        over.shutdown(Shutdown::Both).expect("it is connected");
        live
    });
    (live, local)
}

#[test]
fn a_sending_connection_is_listed_with_its_algorithm_and_rate() {
    if !enter("diag::live::a_sending_connection_is_listed_with_its_algorithm_and_rate") {
        return;
    }
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if !available.split_whitespace().any(|name| name == "bbr") {
        return cannot_run("this kernel has no bbr: sudo modprobe tcp_bbr");
    }
    for (from, algorithm) in [
        (IpAddr::from(Ipv4Addr::LOCALHOST), "bbr"),
        (Ipv6Addr::LOCALHOST.into(), "bbr"),
        (Ipv4Addr::LOCALHOST.into(), "reno"),
    ] {
        let (live, local) = observe_sender(from, algorithm);
        assert!(live.established >= 2, "both sides: {live:?}");
        let connection = live.connections.iter().find(|connection| connection.local == local).expect("it has sent");
        assert_eq!(connection.algorithm, algorithm);
        assert!(connection.goodput_bps > 1e6, "{connection:?}");
        assert_eq!(connection.bw_bps.is_some_and(|bw_bps| bw_bps > 0), algorithm == "bbr", "{connection:?}");
        assert_eq!(connection.verdict == Verdict::NotBbr, algorithm != "bbr");
        assert!(live.connections.iter().all(|connection| connection.goodput_bps > 0.0));
    }
}
