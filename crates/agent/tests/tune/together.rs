//! Concurrent and successive connections of a client.

use crate::stage::Stage;
use crate::traffic::{Pair, connect_to, listen};
use crate::tuning::{cc, hosts, tune};
use std::collections::BTreeSet;

const EVEN: &str = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\ncubic = 1.0\nreno = 1.0\n";

#[test]
fn concurrent_connections_of_a_client_share_an_algorithm_and_later_ones_are_drawn_anew() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let _agent = tune(&stage, EVEN, &[]);
    let listener = listen(&hosts.0, "10.9.8.1");
    let mut algorithms = BTreeSet::new();
    // The probability that 20 draws in a row are equal is 2^-19.
    for _ in 0..20 {
        let mut parallel: Vec<Pair> = (0..4).map(|_| connect_to(&hosts.1, &listener, "10.9.8.1")).collect();
        parallel[0].download(10_000);
        // A connection opened after some have closed still overlaps with others.
        parallel.remove(1).close_by_server();
        parallel.push(connect_to(&hosts.1, &listener, "10.9.8.1"));
        let ccs: BTreeSet<String> = parallel.iter().map(|pair| cc(&pair.server)).collect();
        assert_eq!(ccs.len(), 1, "{ccs:?}");
        let ccs_of_clients: BTreeSet<String> = parallel.iter().map(|pair| cc(&pair.client)).collect();
        assert_eq!(ccs_of_clients.len(), 1, "{ccs_of_clients:?}");
        algorithms.extend(ccs);
        parallel.into_iter().for_each(Pair::close_by_client);
    }
    assert_eq!(algorithms.len(), 2, "{algorithms:?}");
}

#[test]
fn another_address_is_another_client() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let _agent = tune(&stage, EVEN, &[]);
    let listener = listen(&hosts.0, "::");
    let mut algorithms = BTreeSet::new();
    let mut open = Vec::new();
    for number in 10..30 {
        let address = format!("fd09::{number}");
        hosts.1.output(&["ip", "addr", "add", &format!("{address}/64"), "dev", "cable", "nodad"]);
        let route = ["ip", "-6", "route", "replace", "fd09::1/128", "dev", "cable", "src", &address];
        hosts.1.output(&route);
        let pair = connect_to(&hosts.1, &listener, "fd09::1");
        assert_eq!(pair.server.peer_addr().unwrap().ip().to_string(), address);
        algorithms.insert(cc(&pair.server));
        open.push(pair);
    }
    assert_eq!(algorithms.len(), 2, "{algorithms:?}");
}
