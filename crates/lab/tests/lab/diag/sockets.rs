//! Connections over the loopback interface.

use super::namespace::{enter, has, run};
use crate::network_support::cannot_run;
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use thalweg_lab::diag::{CcInfo, STATE_KEYS, Sampler, Socket, TcpInfo, cc_info, state_key, tcp_info};

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the client's and the server's end of a connection; the client uses this congestion control.
fn connect(cc: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback is up");
    let address = listener.local_addr().expect("it is bound");
    let client = TcpStream::connect(address).expect("the listener is open");
    let (server, _) = listener.accept().expect("a client has connected");
    set_tcp_congestion(&client, cc).expect("the kernel has it");
    (client, server)
}

fn transfer(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    from.write_all(&vec![7; bytes]).expect("the other side is there");
    to.read_exact(&mut vec![0; bytes]).expect("they were sent");
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::yield_now();
    }
}

fn info(socket: &TcpStream) -> TcpInfo {
    tcp_info(socket.as_fd()).expect("it is a TCP socket")
}

fn dump() -> Vec<Socket> {
    let mut sockets = Vec::new();
    let mut sampler = Sampler::open(false).expect("the kernel has sock_diag");
    sampler.dump(&mut |socket| sockets.push(*socket)).expect("the kernel answers");
    sockets
}

fn find(socket: &TcpStream) -> Socket {
    let port = socket.local_addr().expect("it is bound").port();
    dump().into_iter().find(|socket| socket.local.port() == port).expect("it is in the dump")
}

/// Returns the number that follows a name in the output of ss.
fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.split_whitespace().find_map(|word| word.strip_prefix(name))?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[test]
fn a_dump_matches_getsockopt() {
    if !enter("diag::sockets::a_dump_matches_getsockopt") {
        return;
    }
    let (mut client, mut server) = connect("bbr");
    transfer(&mut client, &mut server, 300_000);
    until("all is acknowledged", || info(&client).acked_bytes == 300_000);
    let socket = find(&client);
    assert_eq!(socket.remote, server.local_addr().expect("it is bound"));
    assert_eq!(socket.info, info(&client));
    assert_eq!(socket.cc, cc_info(client.as_fd()).expect("it is a TCP socket"));
    // Both ends are listed, because they are in the same namespace.
    assert_eq!(find(&server).info.bytes_sent, 0);
    assert_eq!(dump().len(), 2);
}

#[test]
fn a_dump_matches_ss() {
    if !enter("diag::sockets::a_dump_matches_ss") {
        return;
    }
    if !has("ss") {
        return cannot_run("ss is missing: sudo apt-get install iproute2");
    }
    let (mut client, mut server) = connect("bbr");
    transfer(&mut client, &mut server, 300_000);
    until("all is acknowledged", || info(&client).acked_bytes == 300_000);
    let port = client.local_addr().expect("it is bound").port();
    let ss_line = run(&format!("ss -tinHO sport = :{port}"));
    let Socket { info, cc, .. } = find(&client);
    let says = |name: &str| number(&ss_line, name).unwrap_or_else(|| panic!("ss does not say {name} in {ss_line}"));
    assert_eq!(info.cwnd_packets as f64, says("cwnd:"), "{ss_line}");
    assert_eq!(info.bytes_sent as f64, says("bytes_sent:"), "{ss_line}");
    assert_eq!(info.acked_bytes as f64 + 1.0, says("bytes_acked:"), "the SYN is counted there: {ss_line}");
    assert_eq!(info.segments as f64, says("data_segs_out:"), "{ss_line}");
    assert_eq!(info.srtt_us.expect("there is one") as f64 / 1000.0, says("rtt:"), "{ss_line}");
    assert_eq!(info.min_rtt_us.expect("there is one") as f64 / 1000.0, says("minrtt:"), "{ss_line}");
    let CcInfo::Bbr { bw_bps, min_rtt_us, pacing_gain, .. } = cc else { panic!("{cc:?} is not BBR's") };
    assert_eq!(bw_bps as f64, says("bbr:(bw:"), "{ss_line}");
    let bbr = ss_line.split("bbr:(").nth(1).expect("it was found before").replace(',', " ");
    assert_eq!(min_rtt_us as f64 / 1000.0, number(&bbr, "mrtt:").expect("ss says it"), "{ss_line}");
    let gain = number(&bbr, "pacing_gain:").expect("ss says it");
    assert!((f64::from(pacing_gain) / 256.0 - gain).abs() < 1e-4, "{pacing_gain} is not {gain}");
}

#[test]
fn acknowledged_bytes_count_payload_only() {
    if !enter("diag::sockets::acknowledged_bytes_count_payload_only") {
        return;
    }
    let (mut client, mut server) = connect("reno");
    assert_eq!(info(&client).acked_bytes, 0, "the SYN is not payload");
    transfer(&mut client, &mut server, 1000);
    until("all is acknowledged", || info(&client).unacked_packets == 0);
    assert_eq!(info(&client).acked_bytes, 1000);
    client.shutdown(Shutdown::Write).expect("it is open");
    until("the FIN is acknowledged", || info(&client).state == 5);
    assert_eq!(info(&client).acked_bytes, 1000, "nor is the FIN");
}

#[test]
fn only_pacing_algorithms_have_a_pacing_rate() {
    if !enter("diag::sockets::only_pacing_algorithms_have_a_pacing_rate") {
        return;
    }
    for (cc, is_paced) in [("bbr", true), ("reno", false)] {
        let (mut client, mut server) = connect(cc);
        transfer(&mut client, &mut server, 100_000);
        assert_eq!(info(&client).pacing_rate_bps.is_some(), is_paced, "{cc}");
        assert_eq!(find(&client).info.pacing_rate_bps.is_some(), is_paced, "{cc}");
    }
}

#[test]
fn bbr_reports_its_state_and_reno_reports_none() {
    if !enter("diag::sockets::bbr_reports_its_state_and_reno_reports_none") {
        return;
    }
    let (mut client, mut server) = connect("bbr");
    transfer(&mut client, &mut server, 100_000);
    until("all is acknowledged", || info(&client).acked_bytes == 100_000);
    let mut keys = Vec::new();
    find(&client).cc.report(&mut |key, value| {
        assert!(value > 0.0, "{key} is {value}");
        assert_eq!(state_key(key), Some(key));
        keys.push(key);
    });
    assert_eq!(keys, ["bw_bps", "min_rtt_us", "pacing_gain", "cwnd_gain"]);
    assert!(keys.iter().all(|key| STATE_KEYS.contains(key)));

    let (mut client, mut server) = connect("reno");
    transfer(&mut client, &mut server, 100_000);
    assert_eq!(tcp_congestion(&client).expect("it is a TCP socket"), "reno");
    assert_eq!(find(&client).cc, CcInfo::None);
}

#[test]
fn bytes_written_by_the_application_are_sent_or_queued() {
    if !enter("diag::sockets::bytes_written_by_the_application_are_sent_or_queued") {
        return;
    }
    let (mut client, server) = connect("reno");
    // Checked first, because a pause of a busy machine may later count as a loss.
    assert_eq!(find(&client).info.ssthresh_packets, None, "nothing was lost");
    client.set_nonblocking(true).expect("it is open");
    let mut written = 0;
    // The receiver does not read, so the window closes, and the remaining data waits in the socket.
    until("both buffers are full", || match client.write(&[7; 65_536]) {
        Ok(bytes) => {
            written += bytes as u64;
            false
        }
        Err(_) => true,
    });
    let info = find(&client).info;
    assert!(info.notsent_bytes > 0, "{info:?}");
    assert!(info.bytes_sent + info.notsent_bytes >= written, "{written}: {info:?}");
    assert!(info.acked_bytes + info.notsent_bytes <= written, "{written}: {info:?}");
    drop(server);
}

#[test]
fn a_closed_socket_that_still_sends_is_in_the_dump() {
    if !enter("diag::sockets::a_closed_socket_that_still_sends_is_in_the_dump") {
        return;
    }
    let (mut client, server) = connect("reno");
    let port = client.local_addr().expect("it is bound").port();
    client.set_nonblocking(true).expect("it is open");
    until("both buffers are full", || client.write(&[7; 65_536]).is_err());
    drop(client);
    let closed = dump().into_iter().find(|socket| socket.local.port() == port).expect("it still has to send");
    assert_eq!(closed.info.state, 4, "FIN-WAIT-1");
    drop(server);
}
