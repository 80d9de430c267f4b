//! Large numbers of connections, and sampling.

use crate::common::Namespace;
use crate::common::wait_until;
use crate::stage::Stage;
use crate::traffic::{Pair, connect_to, listen};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;

const PAIRS: usize = 5_000;

/// Number of connections whose closes exceed the capacity of the event queue.
const OVERFLOWING: usize = 7_000;

#[test]
fn ten_thousand_concurrent_connections_are_all_recorded_when_they_close_together() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let listener = listen(&namespaces.0, "10.9.8.1");
    let mut pairs: Vec<Pair> = (0..PAIRS).map(|_| connect_to(&namespaces.1, &listener, "10.9.8.1")).collect();
    let mut sizes = HashMap::new();
    for (number, pair) in pairs.iter_mut().enumerate() {
        let size = 1 + number % 1_000;
        pair.download(size);
        sizes.insert(pair.client_port(), size as u64);
    }
    assert_eq!(agent.status()["connections_open"], 2 * PAIRS as u64);
    for pair in &pairs {
        // All clients close at the same time.
        pair.client.shutdown(std::net::Shutdown::Both).unwrap();
    }
    drop(pairs);
    agent.wait_for_closed(2 * PAIRS as u64);
    assert_eq!((agent.counter("lost_events"), agent.counter("lost_connections")), (0, 0));
    let rows = agent.end();

    let closed =
        |direction| rows.iter().filter(move |row| row.text("kind") == "close" && row.text("direction") == direction);
    assert_eq!((closed("in").count(), closed("out").count()), (PAIRS, PAIRS));
    for row in closed("in") {
        assert_eq!(row.number("acked_bytes"), sizes[&row.number("remote_port")], "{row:?}");
    }
    let received: u64 = closed("out").map(|row| row.number("received_bytes")).sum();
    assert_eq!(received, sizes.values().sum::<u64>());
    let sent: u64 = rows.iter().filter(|row| row.text("kind") == "transfer").map(|row| row.number("acked_bytes")).sum();
    assert_eq!(sent, received, "each is one transfer");
}

#[test]
fn one_in_n_connections_is_recorded_and_the_others_are_counted() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let listener = listen(&namespaces.0, "10.9.8.1");
    let pairs: Vec<Pair> = (0..200).map(|_| connect_to(&namespaces.1, &listener, "10.9.8.1")).collect();
    let agent = stage.record(&["--sample", "1/4"]);
    let joined = agent.counter("joined");
    for mut pair in pairs {
        pair.download(5);
        pair.close_by_client();
    }
    for _ in 0..200 {
        connect_to(&namespaces.1, &listener, "10.9.8.1").close_by_client();
    }
    wait_until("all were seen", || agent.counter("opened") + agent.counter("unsampled") == 400);
    let opened = agent.counter("opened");
    agent.wait_for_closed(opened + joined);
    let rows = agent.end();
    // 100 of 400 on average, with a standard deviation of 8.7.
    assert!((30..=170).contains(&opened), "{opened}");
    assert!((30..=170).contains(&joined), "those that were open before are sampled as well: {joined}");
    let closed = rows.iter().filter(|row| row.text("kind") == "close").count() as u64;
    assert_eq!(closed, opened + joined);
    assert!(rows.iter().all(|row| row.number("sampled_one_in") == 4));
}

#[test]
fn connections_beyond_the_capacity_are_counted() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&["--max-open", "8"]);
    let listener = listen(&namespaces.0, "10.9.8.1");
    let pairs: Vec<Pair> = (0..6).map(|_| connect_to(&namespaces.1, &listener, "10.9.8.1")).collect();
    // The overflow table has space for one more connection.
    assert_eq!((agent.counter("opened"), agent.counter("lost_connections")), (9, 3));
    drop(pairs);
    agent.wait_for_closed(9);
    connect_to(&namespaces.1, &listener, "10.9.8.1").close_by_client();
    agent.wait_for_closed(11);
    assert_eq!(agent.counter("lost_connections"), 3);
}

#[test]
fn lost_events_are_counted_and_shown() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let listener = listen(&namespaces.0, "10.9.8.1");
    let pid = Pid::from_raw(agent.process.pid().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    for _ in 0..OVERFLOWING {
        connect_to(&namespaces.1, &listener, "10.9.8.1").close_by_client();
    }
    kill_process(pid, Signal::CONT).unwrap();
    wait_until("all have closed", || agent.counter("closed") == 2 * OVERFLOWING as u64);
    let (lost, rows) = (agent.counter("lost_events"), agent.counter("close_rows"));
    assert!(lost > 0 && rows > 0, "{lost} {rows}");
    assert_eq!(lost + rows, 2 * OVERFLOWING as u64, "each is a row, or counted as lost");
    let shown = agent.status_text();
    assert!(shown.contains("events dropped because the queue was full"), "{shown}");
    // Recording continues.
    connect_to(&namespaces.1, &listener, "10.9.8.1").close_by_client();
    agent.wait_for_closed(rows + 2);
    assert_eq!(agent.end().iter().filter(|row| row.text("kind") == "close").count() as u64, rows + 2);
}
