//! Connections that were open before recording began, and those that stay open.

use crate::common::Namespace;
use crate::common::wait_until;
use crate::rows::Row;
use crate::stage::Stage;
use crate::traffic::{connect, connect_to, listen};

fn of_port<'a>(rows: &'a [Row], kind: &str, column: &str, port: u64) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.text("kind") == kind && row.maybe(column) == Some(port)).collect()
}

#[test]
fn connections_opened_before_recording_are_recorded_in_all_namespaces() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let mut pair = connect(&namespaces, "10.9.8.1");
    pair.download(40_000);
    let port = pair.client_port();
    // Connections of another cgroup are not recorded.
    let other = stage.outside(|| connect(&namespaces, "10.9.8.1"));
    let agent = stage.record(&[]);
    assert!(agent.process.said.contains("2 were already open"), "{}", agent.process.said);
    pair.download(60_000);
    pair.close_by_client();
    wait_until("both ends are gone", || agent.counter("closed") == 2);
    let rows = agent.end();
    drop(other);

    let server = of_port(&rows, "close", "remote_port", port);
    let [server] = server[..] else { panic!("{rows:#?}") };
    assert_eq!((server.flag("joined"), server.text("direction"), server.text("cc_at_open")), (Some(true), "", ""));
    assert_eq!(server.number("netns"), namespaces.0.number());
    // The kernel counts from the opening. If a scan cannot enable the callback for the close (6.1), the row has the
    // state of the last scan.
    let is_unseen = server.text("close") == "unseen";
    let least = if is_unseen { 40_000 } else { 100_000 };
    assert!((least..=100_000).contains(&server.number("acked_bytes")), "{server:?}");
    assert_eq!((server.maybe("rtt_handshake_us"), server.maybe("acked_1s_bytes")), (None, None));
    assert_ne!(server.text("close"), "");
}

#[test]
fn a_long_connection_has_interim_rows_and_a_final_one() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&["--interim", "1s"]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    let port = pair.client_port();
    pair.download(10_000);
    wait_until("there is an interim row of each end", || agent.counter("interim_rows") >= 2);
    pair.download(5_000);
    wait_until("there is another", || agent.counter("interim_rows") >= 4);
    pair.download(1_000);
    pair.settle(&namespaces.0);
    let rows = agent.end();
    drop(pair);

    let interim = of_port(&rows, "interim", "remote_port", port);
    let acked: Vec<u64> = interim.iter().map(|row| row.number("acked_bytes")).collect();
    assert_eq!((acked.first(), acked.last()), (Some(&10_000), Some(&16_000)), "the last is of the end of recording");
    assert!(acked.is_sorted(), "{acked:?}");
    assert!(interim.iter().all(|row| row.text("close").is_empty() && row.flag("joined") == Some(false)));
    assert_eq!(of_port(&rows, "close", "remote_port", port).len(), 0);
}

#[test]
fn open_connections_are_shown() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "fd09::1");
    pair.download(10_000);
    let table = agent.top();
    let client = pair.client.local_addr().unwrap().to_string();
    assert_eq!(table.matches(&client).count(), 2, "at both ends: {table}");
    let status = agent.status();
    assert_eq!(status["connections_open"], 2);
    assert_eq!((&status["counters"]["opened"], &status["counters"]["lost_events"]), (&2.into(), &0.into()));
    assert_eq!(status["pid"], agent.process.pid());
    assert!(status["usage"]["maps_bytes"].as_u64().unwrap() > 4_000_000, "the buffer alone is as large: {status:#}");
    pair.close_by_client();
    agent.wait_for_closed(2);
    assert_eq!(agent.status()["connections_open"], 0);
}

#[test]
fn connections_closed_before_the_status_request_are_included() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let listener = listen(&namespaces.0, "10.9.8.1");
    for number in 1..=20 {
        let mut pair = connect_to(&namespaces.1, &listener, "10.9.8.1");
        pair.download(1_000);
        pair.close_by_client();
        wait_until("both ends have closed", || {
            let status = agent.status();
            let count = |name: &str| status["counters"][name].as_u64().unwrap();
            assert!(count("close_rows") >= count("closed"), "{status:#}");
            count("closed") == 2 * number
        });
        assert_eq!(agent.counter("transfer_rows"), number);
    }
    agent.end();
}

#[test]
fn a_reconnected_socket_is_a_new_connection() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let listener = listen(&namespaces.0, "10.9.8.1");
    let mut pair = connect_to(&namespaces.1, &listener, "10.9.8.1");
    pair.upload(700);
    rustix::net::connect_unspec(&pair.client).expect("it lets go");
    agent.wait_for_closed(2);
    let address = listener.local_addr().unwrap();
    rustix::net::connect(&pair.client, &address).expect("the same socket, once more");
    (pair.server, _) = listener.accept().expect("it has come");
    pair.upload(30);
    pair.close_by_client();
    agent.wait_for_closed(4);
    let rows = agent.end();
    let closed: Vec<&Row> =
        rows.iter().filter(|row| row.text("kind") == "close" && row.text("direction") == "out").collect();
    let [first, second] = closed[..] else { panic!("{rows:#?}") };
    assert_eq!((first.number("sent_bytes"), second.number("sent_bytes")), (700, 30));
    assert_eq!((first.text("close"), second.text("close")), ("local_reset", "local_fin"));
    assert_eq!(first.number("connection"), second.number("connection"), "one socket");
}
