//! Compares rows with the output of `ss -E` for the same connections.

use crate::common::{Namespace, wait_until};
use crate::rows::Row;
use crate::stage::{Stage, inside};
use crate::traffic::connect;
use std::collections::HashMap;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

/// A running `ss`, which prints a line for each socket of a namespace that is destroyed.
struct Witness {
    child: Child,
    file: std::path::PathBuf,
}

impl Witness {
    /// Starts `ss`, and returns when it receives events.
    fn start(stage: &Stage, namespace: &Namespace) -> Witness {
        let file = stage.path(&format!("ss-{}.txt", namespace.holder.id()));
        let out = File::create(&file).expect("a file");
        // Line-buffered, although the output is a file.
        let mut command = namespace.command(&["stdbuf", "--output=L", "ss", "-tEinO"]);
        let child = command.stdin(Stdio::null()).stdout(out).spawn().expect("ss");
        let witness = Witness { child, file };
        // These connections must not be recorded.
        stage.outside(|| {
            wait_until("ss looks", || {
                inside(namespace, || {
                    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
                    let client = TcpStream::connect(listener.local_addr().unwrap()).expect("a connection");
                    drop((listener.accept().expect("it has come"), client));
                });
                witness.text().lines().count() > 1
            });
        });
        witness
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.file).expect("its text")
    }

    /// Returns the names and values printed by `ss` for the socket with this local port.
    fn fields(&self, port: u64) -> Option<HashMap<String, String>> {
        let text = self.text();
        let line = text.lines().find(|line| {
            let local = line.split_whitespace().nth(3).unwrap_or_default();
            local.ends_with(&format!(":{port}")) && line.contains("segs_out:")
        })?;
        let fields = line.split_whitespace().filter_map(|word| word.split_once(':'));
        Some(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a number that `ss` omits if it is zero.
fn number(fields: &HashMap<String, String>, name: &str) -> u64 {
    fields.get(name).map_or(0, |value| value.parse().unwrap_or_else(|_| panic!("{name}: {value}")))
}

/// Parses a time in milliseconds in the format of `ss`; returns microseconds.
fn us(text: &str) -> f64 {
    text.parse::<f64>().expect("a number") * 1e3
}

/// Compares a row with `ss`. The `others` arguments are what `ss` counts in addition to payload: SYN and FIN.
fn assert_same(row: &Row, fields: &HashMap<String, String>, acked_others: u64, received_others: u64) {
    for (column, name) in [
        ("sent_bytes", "bytes_sent"),
        ("retransmitted_bytes", "bytes_retrans"),
        ("segments", "data_segs_out"),
        ("segments_out", "segs_out"),
        ("segments_in", "segs_in"),
        ("mss_bytes", "mss"),
        ("reorderings", "reord_seen"),
        ("ce_packets", "delivered_ce"),
    ] {
        assert_eq!(row.number(column), number(fields, name), "{column}: {row:?} {fields:?}");
    }
    assert_eq!(row.number("acked_bytes"), number(fields, "bytes_acked") - acked_others, "{row:?} {fields:?}");
    assert_eq!(row.number("received_bytes"), number(fields, "bytes_received") - received_others, "{row:?} {fields:?}");
    // Format: retransmissions in flight, a slash, and the total.
    let retransmits = fields.get("retrans").map_or("0", |value| value.split_once('/').expect("two numbers").1);
    assert_eq!(row.number("retransmits").to_string(), retransmits, "{row:?} {fields:?}");
    let srtt_us = us(fields["rtt"].split_once('/').expect("two numbers").0);
    assert!((row.number("rtt_smoothed_us") as f64 - srtt_us).abs() <= 1.0, "{row:?} {fields:?}");
    assert!((row.number("rtt_min_us") as f64 - us(&fields["minrtt"])).abs() <= 1.0, "{row:?} {fields:?}");
    // `ss` prints the busy time in milliseconds.
    let busy_us = fields.get("busy").map_or(0.0, |value| us(value.trim_end_matches("ms")));
    assert!((row.number("busy_us") as f64 - busy_us).abs() <= 1_000.0, "{row:?} {fields:?}");
}

fn close_row<'a>(rows: &'a [Row], direction: &str) -> &'a Row {
    rows.iter().find(|row| row.text("kind") == "close" && row.text("direction") == direction).expect("its row")
}

#[test]
fn recorded_values_match_ss() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let witnesses = [Witness::start(&stage, &namespaces.0), Witness::start(&stage, &namespaces.1)];
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    let ports = [pair.server.local_addr().unwrap().port(), pair.client.local_addr().unwrap().port()].map(u64::from);
    pair.upload(12_345);
    pair.download(3_000_000);
    pair.upload(7);
    pair.close_by_client();
    agent.wait_for_closed(2);
    wait_until("ss has seen both", || {
        witnesses.iter().zip(ports).all(|(witness, port)| witness.fields(port).is_some())
    });
    let rows = agent.end();
    let [server, client] = [0, 1].map(|at| witnesses[at].fields(ports[at]).unwrap());
    assert_same(close_row(&rows, "in"), &server, 1, 1);
    // For the side that opened the connection, bytes_acked counts its SYN in addition to the FIN.
    assert_same(close_row(&rows, "out"), &client, 2, 1);
}

#[test]
fn losses_match_ss_and_the_filter_that_caused_them() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    // Offloads are turned off, so that single packets are dropped.
    for namespace in [&namespaces.0, &namespaces.1] {
        namespace.output(&["ethtool", "-K", "cable", "gso", "off", "tso", "off", "gro", "off"]);
    }
    for line in [
        "add table ip lossy",
        "add chain ip lossy in { type filter hook input priority 0 ; }",
        "add rule ip lossy in ip saddr 10.9.8.1 meta length > 1000 numgen inc mod 50 == 49 counter drop",
    ] {
        namespaces.1.output(&["nft", line]);
    }
    let witness = Witness::start(&stage, &namespaces.0);
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    let port = u64::from(pair.server.local_addr().unwrap().port());
    pair.download(3_000_000);
    pair.close_by_client();
    agent.wait_for_closed(2);
    wait_until("ss has seen it", || witness.fields(port).is_some());
    let rows = agent.end();
    let row = close_row(&rows, "in");
    assert_same(row, &witness.fields(port).unwrap(), 1, 1);
    let counted = namespaces.1.output(&["nft", "list", "table", "ip", "lossy"]);
    let (_, dropped) = counted.split_once("counter packets ").expect("a counter");
    let dropped: u64 = dropped.split(' ').next().unwrap().parse().unwrap();
    assert!(dropped >= 40, "{counted}");
    assert_eq!(row.number("acked_bytes"), 3_000_000);
    // Spurious retransmissions are possible.
    assert!(row.number("retransmits") >= dropped, "{row:?} {dropped}");
    assert!(row.number("lost_packets") >= dropped, "{row:?} {dropped}");
    assert_eq!(close_row(&rows, "out").number("retransmits"), 0);
}
