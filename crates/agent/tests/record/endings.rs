//! Connections that close in different ways, and their identification.

use crate::common::Namespace;
use crate::rows::Row;
use crate::stage::Stage;
use crate::traffic::{Pair, connect, connect_to, listen, reset_on_close};
use rustix::net::sockopt;
use std::io::{Read, Write};

/// Returns the row of one end of the connection whose client has this port.
fn closed<'a>(rows: &'a [Row], direction: &str, client_port: u64) -> &'a Row {
    let port = if direction == "out" { "local_port" } else { "remote_port" };
    let mut of = rows.iter().filter(|row| {
        row.text("kind") == "close" && row.text("direction") == direction && row.number(port) == client_port
    });
    let row = of.next().unwrap_or_else(|| panic!("no {direction} of {client_port} in {rows:#?}"));
    assert!(of.next().is_none(), "two rows for {direction} of {client_port}: {rows:#?}");
    row
}

#[test]
fn both_ends_record_which_side_sent_the_first_fin() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut first = connect(&namespaces, "10.9.8.1");
    first.upload(300);
    first.download(200_000);
    let first_port = first.client_port();
    first.close_by_server();
    let mut second = connect(&namespaces, "10.9.8.1");
    second.download(1_000);
    let second_port = second.client_port();
    second.close_by_client();
    agent.wait_for_closed(4);
    let rows = agent.end();

    let server = closed(&rows, "in", first_port);
    assert_eq!((server.text("close"), closed(&rows, "out", first_port).text("close")), ("local_fin", "remote_fin"));
    let second = [closed(&rows, "in", second_port).text("close"), closed(&rows, "out", second_port).text("close")];
    assert_eq!(second, ["remote_fin", "local_fin"]);
    // Spurious retransmissions are possible on a slow machine.
    let sent_once = server.number("sent_bytes") - server.number("retransmitted_bytes");
    assert_eq!((server.number("acked_bytes"), sent_once), (200_000, 200_000));
    assert_eq!(server.number("received_bytes"), 300);
    let client = closed(&rows, "out", first_port);
    assert_eq!((client.number("acked_bytes"), client.number("received_bytes")), (300, 200_000));
}

#[test]
fn both_ends_record_a_reset() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    pair.download(5_000);
    pair.settle(&namespaces.0);
    let port = pair.client_port();
    let Pair { mut client, server } = pair;
    reset_on_close(&server);
    drop(server);
    assert!(client.read(&mut [0; 1]).is_err(), "it is reset");
    drop(client);
    agent.wait_for_closed(2);
    let rows = agent.end();
    let server = closed(&rows, "in", port);
    assert_eq!((server.text("close"), closed(&rows, "out", port).text("close")), ("local_reset", "remote_reset"));
    assert_eq!(server.number("acked_bytes"), 5_000);
}

#[test]
fn an_unresponsive_peer_is_recorded_as_a_timeout() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    pair.download(5_000);
    pair.settle(&namespaces.0);
    let port = pair.client_port();
    // The peer disappears without a reset or an ICMP error.
    namespaces.1.output(&["ip", "addr", "del", "10.9.8.2/24", "dev", "cable"]);
    sockopt::set_tcp_user_timeout(&pair.server, 300).expect("the kernel takes it");
    pair.server.write_all(&[0; 7_000]).expect("room for it");
    agent.wait_for_closed(1);
    let rows = agent.end();
    let server = closed(&rows, "in", port);
    assert_eq!(server.text("close"), "timeout");
    assert_eq!(server.number("acked_bytes"), 5_000, "{server:?}");
    assert!(server.number("sent_bytes") >= 12_000 && server.number("retransmits") > 0, "{server:?}");
    let unfinished = rows.iter().rfind(|row| row.text("kind") == "transfer" && row.text("direction") == "in");
    let unfinished = unfinished.expect("what was sent last");
    assert_eq!(unfinished.maybe("fct_us"), None, "it was not completed");
}

#[test]
fn endpoints_namespaces_and_cgroups_are_those_of_the_socket() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let v4 = connect(&namespaces, "10.9.8.1");
    let v6 = connect(&namespaces, "fd09::1");
    // An IPv4 connection to an IPv6 socket.
    let dual = listen(&namespaces.0, "::");
    let mapped = connect_to(&namespaces.1, &dual, "10.9.8.1");
    let ports = [&v4, &v6, &mapped].map(|pair| (pair.client_port(), pair.server_port()));
    for pair in [v4, v6, mapped] {
        pair.close_by_client();
    }
    agent.wait_for_closed(6);
    let rows = agent.end();
    for ((port, server_port), version, ours, theirs) in [
        (ports[0], 4, "10.9.8.1", "10.9.8.2"),
        (ports[1], 6, "fd09::1", "fd09::2"),
        (ports[2], 4, "10.9.8.1", "10.9.8.2"),
    ] {
        // Connections to different ports may have the same client port.
        let is_of = |row: &&Row| ["local_port", "remote_port"].iter().any(|end| row.number(end) == server_port);
        let rows: Vec<Row> = rows.iter().filter(is_of).cloned().collect();
        let (server, client) = (closed(&rows, "in", port), closed(&rows, "out", port));
        assert_eq!((server.number("ip_version"), client.number("ip_version")), (version, version));
        assert_eq!((server.text("local_address"), server.text("remote_address")), (ours, theirs));
        assert_eq!((client.text("local_address"), client.text("remote_address")), (theirs, ours));
        assert_eq!((server.number("netns"), client.number("netns")), (namespaces.0.number(), namespaces.1.number()));
        let cgroup = format!("/{}", stage.cgroup.file_name().unwrap().to_string_lossy());
        assert_eq!((server.text("cgroup"), client.text("cgroup")), (cgroup.as_str(), cgroup.as_str()));
    }
}

#[test]
fn connections_of_other_cgroups_are_not_recorded() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let other = stage.outside(|| connect(&namespaces, "10.9.8.1"));
    other.close_by_client();
    let own = connect(&namespaces, "10.9.8.1");
    let port = own.client_port();
    own.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let ports: Vec<u64> =
        rows.iter().filter(|row| row.text("direction") == "out").map(|row| row.number("local_port")).collect();
    assert_eq!(ports, [port]);
}

#[test]
fn the_algorithms_at_open_and_at_close_are_recorded() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let pair = connect(&namespaces, "10.9.8.1");
    let at_open = sockopt::tcp_congestion(&pair.server).expect("it has one");
    sockopt::set_tcp_congestion(&pair.server, "reno").expect("every kernel has it");
    let port = pair.client_port();
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let server = closed(&rows, "in", port);
    assert_eq!((server.text("cc_at_open"), server.text("cc")), (at_open.as_str(), "reno"));
    assert_eq!(server.maybe("bbr_bw_bps"), None, "what BBR has left is not told of another algorithm");
}
