//! Tests `--detail low`.

use crate::common::Namespace;
use crate::rows::Row;
use crate::stage::Stage;
use crate::traffic::connect;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

/// Idle time longer than --idle-gap; two of them exceed a second, for the column acked_1s_bytes.
const IDLE: Duration = Duration::from_millis(600);

/// The omitted columns, as listed in docs/reference/agent-record.md.
const LEFT_OUT: [&str; 26] = [
    "duration_us",
    "ip_version",
    "local_address",
    "local_port",
    "remote_port",
    "received_bytes",
    "retransmitted_bytes",
    "segments_out",
    "segments_in",
    "lost_packets",
    "reordering",
    "reorderings",
    "ecn",
    "ce_packets",
    "mss_bytes",
    "rtt_smoothed_us",
    "rtt_p95_us",
    "delivery_rate_bps",
    "delivery_rate_app_limited",
    "delivery_rate_max_bps",
    "sndbuf_limited_us",
    "app_limited_share",
    "bbr_bw_bps",
    "bbr_min_rtt_us",
    "cpu_limited",
    "buffer_bdp",
];

const TIMES: [&str; 14] = [
    "end_us",
    "connection",
    "start_us",
    "rtt_handshake_us",
    "rtt_min_us",
    "rtt_max_us",
    "busy_us",
    "rwnd_limited_us",
    "segments",
    "retransmits",
    "sent_bytes",
    "acked_1s_bytes",
    "fct_us",
    "goodput_bps",
];
/// Columns whose presence depends on the duration of the connection.
const SOMETIMES: [&str; 4] = ["busy_goodput_bps", "acked_3s_bytes", "acked_10s_bytes", "acked_30s_bytes"];

/// Records a connection with three transfers in each direction, and returns the rows of both ends in order.
fn recorded(stage: &Stage, namespaces: &(Namespace, Namespace), options: &[&str]) -> Vec<Row> {
    let agent = stage.record(options);
    let mut pair = connect(namespaces, "10.9.8.1");
    for size in [100_000, 3_000_000, 2_000] {
        pair.upload(200);
        pair.download(size);
        sleep(IDLE);
    }
    pair.close_by_client();
    agent.wait_for_closed(2);
    let mut rows = agent.end();
    rows.sort_by_key(|row| (row.text("direction").to_owned(), row.text("kind").to_owned(), row.maybe("transfer")));
    rows
}

fn columns(row: &Row) -> BTreeSet<&str> {
    row.columns().filter(|column| !SOMETIMES.contains(column)).collect()
}

#[test]
fn low_detail_has_the_rows_of_full_detail_without_the_other_columns() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let full = recorded(&stage, &namespaces, &[]);
    let latest_us = full.iter().map(|row| row.number("end_us")).max();
    let mut low = recorded(&stage, &namespaces, &["--detail", "low"]);
    // The rows of both runs are in the same folder.
    low.retain(|row| Some(row.number("end_us")) > latest_us);
    // Each end has three transfers and a connection.
    assert_eq!((full.len(), low.len()), (8, 8), "{full:?} {low:?}");
    let left_out = BTreeSet::from(LEFT_OUT);
    for (full, low) in full.iter().zip(&low) {
        assert!(columns(full).intersection(&left_out).count() > 5, "{full:?}");
        assert_eq!(columns(low), columns(full).difference(&left_out).copied().collect(), "{low:?}");
        for column in columns(low).into_iter().filter(|column| !TIMES.contains(column)) {
            assert_eq!(low.value(column), full.value(column), "{column}: {low:?} {full:?}");
        }
    }
    let closed = low.iter().find(|row| row.text("kind") == "close" && row.text("direction") == "in").expect("a row");
    assert_eq!(closed.number("acked_bytes"), 3_102_000);
    assert!((100_000..=3_100_000).contains(&closed.number("acked_1s_bytes")), "{closed:?}");
    let second = low.iter().find(|row| row.maybe("transfer") == Some(1)).expect("a row");
    assert!(second.number("rtt_max_us") >= second.number("rtt_min_us") && second.number("fct_us") > 0, "{second:?}");
}

#[test]
fn low_detail_has_no_rows_of_open_connections() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&["--detail", "low", "--interim", "1s"]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    pair.download(100_000);
    // With full detail, each scan, one per second, would write a row.
    sleep(Duration::from_millis(2_500));
    assert!(agent.process.said.contains("detail low"), "{}", agent.process.said);
    assert!(agent.top().contains("10.9.8.1"), "open connections are shown all the same");
    let rows = agent.end();
    assert!(rows.is_empty(), "{rows:?}");
}
