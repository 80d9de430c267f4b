//! The algorithms that connections get.

use crate::common::{Namespace, wait_until};
use crate::stage::{Agent, Stage, inside};
use crate::traffic::{Pair, connect, connect_to, listen};
use crate::tuning::{ALL_CUBIC, cc, choice, closed, hosts, query_json, tune};
use std::net::TcpListener;

fn ccs(pair: &Pair) -> [String; 2] {
    [cc(&pair.server), cc(&pair.client)]
}

/// Transfers data and stops the agent; returns the selection columns of the server's and the client's row.
fn rows_of(agent: Agent, mut pair: Pair) -> [[String; 4]; 2] {
    pair.download(50_000);
    pair.upload(50_000);
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    ["in", "out"].map(|direction| choice(closed(&rows, direction)).map(str::to_owned))
}

#[test]
fn both_ends_use_the_drawn_algorithm_and_their_rows_record_it() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["reno", "reno"], "without it");
    let agent = tune(&stage, ALL_CUBIC, &[]);
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["cubic", "cubic"]);
    for row in rows_of(agent, pair) {
        assert_eq!(row, ["treated", "cubic", "cubic", "cubic"]);
    }
    assert_eq!(ccs(&connect(&hosts, "10.9.8.1")), ["reno", "reno"], "it has gone");
}

#[test]
fn low_detail_learns_the_same_and_leaves_columns_empty() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, &format!("detail = \"low\"\n{ALL_CUBIC}"), &[]);
    let mut pair = connect(&hosts, "10.9.8.1");
    pair.download(3_000_000);
    pair.close_by_client();
    agent.wait_for_closed(2);
    wait_until("both are learned from", || {
        let status = query_json(&stage, &["status"]);
        let learned =
            status["closed"].as_array().expect("a list").iter().filter(|algorithm| algorithm["cc"] == "cubic");
        learned.map(|algorithm| algorithm["treated"].as_u64().expect("a count")).sum::<u64>() == 2
    });
    // Both namespaces have an entry; the server has sent more.
    let explained = query_json(&stage, &["explain", "10.9.8.2"])["explained"].clone();
    let arms =
        explained.as_array().expect("a list").iter().filter_map(|destination| destination["arms"].as_array()).flatten();
    let mut learned = arms.filter(|arm| arm["cc"] == "cubic" && arm["segments"].as_u64() > Some(50));
    let cubic = learned.next().unwrap_or_else(|| panic!("{explained}"));
    assert!(cubic["connections"] == 1 && cubic["rtt_min_us"].as_u64() > Some(0), "{cubic}");
    let rows = agent.end();
    let row = closed(&rows, "in");
    assert_eq!(choice(row).map(str::to_owned), ["treated", "cubic", "cubic", "cubic"]);
    assert_eq!((row.number("acked_bytes"), row.maybe("rtt_p95_us"), row.maybe("segments_in")), (3_000_000, None, None));
}

#[test]
fn an_option_takes_precedence_over_the_key_for_detail() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, &format!("detail = \"low\"\n{ALL_CUBIC}"), &["--detail", "full"]);
    let pair = connect(&hosts, "10.9.8.1");
    pair.close_by_client();
    agent.wait_for_closed(2);
    assert!(closed(&agent.end(), "in").maybe("segments_in").is_some());
}

#[test]
fn held_out_connections_keep_the_default() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--holdout", "1"]);
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["reno", "reno"]);
    for row in rows_of(agent, pair) {
        assert_eq!(row, ["held_out", "reno", "reno", "reno"]);
    }
}

#[test]
fn a_dry_run_decides_and_sets_nothing() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &["--dry-run"]);
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["reno", "reno"]);
    for row in rows_of(agent, pair) {
        assert_eq!(row, ["treated", "cubic", "reno", "reno"]);
    }
}

#[test]
fn draw_frequencies_match_the_configured_probabilities() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let settings = "policy = \"static\"\nholdout = 0.25\nprivate = true\n[static]\ncubic = 2.0\nreno = 1.0\n";
    let agent = tune(&stage, settings, &[]);
    let mut counted = [0; 3];
    const COUNT: u64 = 400;
    let listener = listen(&hosts.0, "10.9.8.1");
    for _ in 0..COUNT {
        let pair = connect_to(&hosts.1, &listener, "10.9.8.1");
        counted[usize::from(cc(&pair.server) == "cubic")] += 1;
        counted[2] += usize::from(cc(&pair.client) == "cubic");
        // Both ends have sent their FIN, so that the next connection is drawn again.
        pair.close_by_client();
    }
    agent.wait_for_closed(2 * COUNT);
    // 400 x 3/4 x 2/3 = 200, with a standard deviation of 10.
    for cubic in &counted[1..] {
        assert!((140..=260).contains(cubic), "{counted:?}");
    }
    let rows = agent.end();
    let held_out =
        rows.iter().filter(|row| row.text("kind") == "close" && row.text("assignment") == "held_out").count();
    // 800 / 4 = 200, with a standard deviation of 12.
    assert!((130..=270).contains(&held_out), "{held_out}");
}

#[test]
fn ipv6_and_ipv4_mapped_connections_are_tuned() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let settings = format!("{ALL_CUBIC}[[override]]\nprefix = \"10.9.8.2/32\"\nkeep = true\n");
    let _agent = tune(&stage, &settings, &[]);
    assert_eq!(ccs(&connect(&hosts, "fd09::1")), ["cubic", "cubic"]);
    // The server's socket is IPv6; its peer 10.9.8.2 is left alone by an IPv4 override.
    let listener = inside(&hosts.0, || TcpListener::bind(("::", 0)).expect("a free port"));
    let mapped = connect_to(&hosts.1, &listener, "10.9.8.1");
    assert!(mapped.server.peer_addr().unwrap().is_ipv6());
    assert_eq!(ccs(&mapped), ["reno", "cubic"]);
}

#[test]
fn algorithms_that_need_ecn_are_selected_only_in_data_centres() {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    if !available.split_whitespace().any(|name| name == "dctcp") {
        // Guests run this test.
        return eprintln!("left out here: the kernel has no dctcp");
    }
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let settings = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\ndctcp = 1.0\n\
                    [[override]]\nprefix = \"10.9.8.0/24\"\ndata_center = true\n";
    let _agent = tune(&stage, settings, &["--arms", "reno,cubic,dctcp"]);
    // A network namespace has probabilities once it is found, or the first of its connections has closed.
    let within = || ccs(&connect(&hosts, "10.9.8.1"));
    wait_until("the data centre is known", || within() == ["dctcp", "dctcp"]);
    let elsewhere = || ccs(&connect(&hosts, "fd09::1"));
    wait_until("what is elsewhere is known", || elsewhere() == ["reno", "reno"]);
    // A peer that does not request ECN.
    hosts.1.output(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=cubic"]);
    let listener = listen(&hosts.0, "10.9.8.1");
    let pair = stage.outside(|| connect_to(&hosts.1, &listener, "10.9.8.1"));
    assert_eq!(cc(&pair.client), "cubic", "it is not tuned");
    assert_eq!(cc(&pair.server), "reno");
}

#[test]
fn held_out_connections_keep_the_default_of_their_namespace() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    hosts.1.output(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=bbr"]);
    let agent = tune(&stage, ALL_CUBIC, &["--holdout", "1"]);
    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!(ccs(&pair), ["reno", "bbr"]);
    let [server, client] = rows_of(agent, pair);
    assert_eq!(server, ["held_out", "reno", "reno", "reno"]);
    assert_eq!(client, ["held_out", "bbr", "bbr", "bbr"]);
}

/// Drops IPv4 packets of more than 1000 bytes from the first host to the second, as selected by an nftables expression.
pub fn lose(hosts: &(Namespace, Namespace), rule: &str) {
    for host in [&hosts.0, &hosts.1] {
        host.output(&["ethtool", "-K", "cable", "gso", "off", "tso", "off", "gro", "off"]);
    }
    for line in [
        "add table ip lossy",
        "add chain ip lossy in { type filter hook input priority 0 ; }",
        &format!("add rule ip lossy in ip saddr 10.9.8.1 meta length > 1000 {rule} drop"),
    ] {
        hosts.1.output(&["nft", line]);
    }
}

#[test]
fn the_bpftune_rule_moves_lossy_connections_to_bbr() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    // The choice is reno, the default: there are too few connections to choose by.
    let settings = "policy = \"bpftune\"\nholdout = 0.0\nprivate = true\n[bpftune]\nmin_instances = 1000\n";
    let agent = tune(&stage, settings, &[]);
    wait_until("the namespace is known", || {
        let pair = connect(&hosts, "10.9.8.1");
        let is_known = ccs(&pair) == ["reno", "reno"];
        pair.close_by_client();
        is_known
    });
    let mut clean = connect(&hosts, "10.9.8.1");
    clean.download(500_000);
    assert_eq!(cc(&clean.server), "reno");
    lose(&hosts, "numgen inc mod 20 == 19");
    let mut lossy = connect(&hosts, "fd09::1");
    lossy.download(500_000);
    assert_eq!(cc(&lossy.server), "reno", "the rule drops no packet of version 6");
    clean.download(500_000);
    wait_until("it is moved", || cc(&clean.server) == "bbr");
    let port = clean.client_port();
    clean.close_by_client();
    wait_until("its row is made", || agent.counter("transfer_rows") >= 1 && agent.status()["connections_open"] == 2);
    let rows = agent.end();
    let row = rows.iter().find(|row| row.text("kind") == "close" && row.maybe("remote_port") == Some(port));
    assert_eq!(choice(row.expect("its row")), ["treated", "bbr", "reno", "bbr"]);
    drop(lossy);
}
