//! Connections that are not tuned.

use crate::common::Namespace;
use crate::common::wait_until;
use crate::stage::{Stage, inside};
use crate::traffic::{Pair, connect, connect_to, listen};
use crate::tuning::{ALL_CUBIC, because, cc, choice, closed, decided, hosts, query_json, tune};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, bind, connect as open, listen as await_connections, socket};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener, TcpStream};

fn ccs(pair: &Pair) -> [String; 2] {
    [cc(&pair.server), cc(&pair.client)]
}

/// Stops the agent; returns the selection columns of the server's and the client's row.
fn groups(agent: crate::stage::Agent, pair: Pair) -> [[String; 4]; 2] {
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    ["in", "out"].map(|direction| choice(closed(&rows, direction)).map(str::to_owned))
}

/// Returns a connection for which both applications have chosen this algorithm, the server's on its listener.
fn connect_with_algorithm(hosts: &(Namespace, Namespace), name: &str) -> Pair {
    let tcp = || socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let listener = inside(&hosts.0, || {
        let listener = tcp();
        set_tcp_congestion(&listener, name).expect("it is there");
        bind(&listener, &SocketAddr::new("10.9.8.1".parse().unwrap(), 0)).expect("a free port");
        await_connections(&listener, 1).expect("it listens");
        TcpListener::from(listener)
    });
    let address = listener.local_addr().unwrap();
    let client = inside(&hosts.1, || {
        let client = tcp();
        set_tcp_congestion(&client, name).expect("it is there");
        open(&client, &address).expect("a connection");
        TcpStream::from(client)
    });
    let (server, _) = listener.accept().unwrap();
    Pair { client, server }
}

#[test]
fn an_algorithm_set_by_the_application_is_kept() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &[]);
    // An application that sets the default by name has also chosen.
    assert_eq!(ccs(&connect_with_algorithm(&hosts, "reno")), ["reno", "reno"]);
    let pair = connect_with_algorithm(&hosts, "bbr");
    assert_eq!(ccs(&pair), ["bbr", "bbr"]);
    let port = pair.client_port();
    drop(pair);
    agent.wait_for_closed(4);
    wait_until("all are counted", || decided(&stage, "application", None) == 4);
    let rows = agent.end();
    assert!(rows.iter().filter(|row| row.text("kind") == "close").all(|row| because(row) == "application"));
    let of_it: Vec<_> = rows.iter().filter(|row| row.maybe("local_port") == Some(port)).collect();
    assert_eq!(of_it.iter().map(|row| choice(row)).collect::<Vec<_>>(), [["untouched", "", "bbr", "bbr"]]);
    assert!(rows.iter().filter(|row| row.text("kind") == "close").all(|row| row.text("assignment") == "untouched"));
}

#[test]
fn an_algorithm_set_later_by_the_application_is_kept_and_recorded() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &[]);
    let pair = connect(&hosts, "10.9.8.1");
    set_tcp_congestion(&pair.server, "bbr").unwrap();
    let [server, client] = groups(agent, pair);
    assert_eq!(server, ["treated", "cubic", "cubic", "bbr"]);
    assert_eq!(client, ["treated", "cubic", "cubic", "cubic"]);
}

#[test]
fn an_algorithm_set_by_a_route_is_kept() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &[]);
    hosts.0.output(&["ip", "route", "change", "10.9.8.0/24", "dev", "cable", "src", "10.9.8.1", "congctl", "bbr"]);
    // Locked, so that no application can change it; it is also the default.
    let locked = ["ip", "route", "change", "10.9.8.0/24", "dev", "cable", "src", "10.9.8.2", "congctl", "lock", "reno"];
    hosts.1.output(&locked);
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["bbr", "reno"]);
    pair.close_by_client();
    agent.wait_for_closed(2);
    wait_until("both are counted", || decided(&stage, "route", None) == 2);
    let explained = query_json(&stage, &["explain", "10.9.8.1"]);
    let all = explained["explained"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|destination| destination["closed"].as_array().unwrap());
    let mut shown: Vec<(&Value, &Value)> = all.map(|closed| (&closed["cc"], &closed["reason"])).collect();
    shown.sort_by_key(|(cc, _)| cc.as_str());
    assert_eq!(shown, [(&json!("bbr"), &json!("route")), (&json!("reno"), &json!("route"))], "{explained}");
    let rows = agent.end();
    let [server, client] = ["in", "out"].map(|direction| closed(&rows, direction));
    assert_eq!((choice(server), because(server)), (["untouched", "", "bbr", "bbr"], "route"));
    assert_eq!((choice(client), because(client)), (["untouched", "", "reno", "reno"], "route"));
}

#[test]
fn overrides_take_precedence() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let settings = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\nreno = 1.0\n\
                    [[override]]\nprefix = \"10.9.0.0/16\"\nkeep = true\n\
                    [[override]]\nprefix = \"10.9.8.1/32\"\ncc = \"cubic\"\n\
                    [[override]]\nprefix = \"fd09::/64\"\ncc = \"cubic\"\n";
    let agent = tune(&stage, settings, &[]);
    assert_eq!(ccs(&connect(&hosts, "fd09::1")), ["cubic", "cubic"]);
    // The server's peer is 10.9.8.2, the client's 10.9.8.1.
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["reno", "cubic"]);
    agent.wait_for_closed(2);
    pair.close_by_client();
    agent.wait_for_closed(4);
    wait_until("all are counted", || {
        decided(&stage, "override", Some("cubic")) == 3 && decided(&stage, "keep", None) == 1
    });
    let shown = query_json(&stage, &["explain", "10.9.8.1"])["explained"][0].clone();
    assert_eq!((&shown["decision"], &shown["said"]), (&json!("override"), &json!("cubic")));
    let rows = agent.end();
    let of_v4 = |direction: &str| {
        let mut rows = rows.iter().filter(|row| row.text("kind") == "close" && row.maybe("ip_version") == Some(4));
        rows.find(|row| row.text("direction") == direction).expect("its row")
    };
    let (kept, set) = (of_v4("in"), of_v4("out"));
    assert_eq!((choice(kept), because(kept)), (["untouched", "", "reno", "reno"], "keep"));
    assert_eq!((choice(set), because(set)), (["untouched", "cubic", "cubic", "cubic"], "override"));
}

#[test]
fn private_addresses_are_excluded_unless_enabled_and_public_ones_are_not() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    for (host, v4, v6) in
        [(&hosts.0, "198.51.100.1/24", "2001:db8:7::1/64"), (&hosts.1, "198.51.100.2/24", "2001:db8:7::2/64")]
    {
        host.output(&["ip", "addr", "add", v4, "dev", "cable"]);
        host.output(&["ip", "addr", "add", v6, "dev", "cable", "nodad"]);
    }
    let settings = ALL_CUBIC.replace("private = true\n", "");
    let _agent = tune(&stage, &settings, &[]);
    for (host, address) in [
        (&hosts.0, "100.64.9.1/24"),
        (&hosts.1, "100.64.9.2/24"),
        (&hosts.0, "169.254.9.1/24"),
        (&hosts.1, "169.254.9.2/24"),
    ] {
        host.output(&["ip", "addr", "add", address, "dev", "cable"]);
    }
    for address in ["10.9.8.1", "fd09::1", "100.64.9.1", "169.254.9.1"] {
        assert_eq!(ccs(&connect(&hosts, address)), ["reno", "reno"], "{address}");
    }
    // An IPv6 socket whose peer has a private IPv4 address.
    let listener = inside(&hosts.0, || TcpListener::bind(("::", 0)).expect("a free port"));
    assert_eq!(ccs(&connect_to(&hosts.1, &listener, "10.9.8.1")), ["reno", "reno"]);
    for address in ["198.51.100.1", "2001:db8:7::1"] {
        assert_eq!(ccs(&connect(&hosts, address)), ["cubic", "cubic"], "{address}");
    }
    for address in ["127.0.0.1", "::1"] {
        let listener = listen(&hosts.0, address);
        assert_eq!(ccs(&connect_to(&hosts.0, &listener, address)), ["reno", "reno"], "{address}");
    }
    let counts = || {
        let left_alone = ["private", "link_local", "loopback"].map(|reason| decided(&stage, reason, None));
        (left_alone, decided(&stage, "treated", Some("cubic")))
    };
    wait_until("each is counted with its reason", || counts() == ([8, 2, 4], 4));
    // The explanation matches the decision, also for unseen addresses.
    let decision = |address: &str| query_json(&stage, &["explain", address])["explained"][0]["decision"].clone();
    for (address, expected) in [
        ("10.9.8.1", "private"),
        ("::ffff:10.200.0.1", "private"),
        ("fd09::1", "private"),
        ("100.64.9.1", "private"),
        ("169.254.9.1", "link_local"),
        ("fe80::7", "link_local"),
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
    ] {
        assert_eq!(decision(address), expected, "{address}");
    }
}
