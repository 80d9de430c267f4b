//! Transfers within a connection, and the bytes acknowledged at given times.

use crate::common::Namespace;
use crate::rows::Row;
use crate::stage::Stage;
use crate::traffic::connect;
use std::io::{Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Think time, longer than the default of --idle-gap.
const THINKING: Duration = Duration::from_millis(450);

fn sent_by_server(rows: &[Row]) -> Vec<&Row> {
    let mut transfers: Vec<&Row> =
        rows.iter().filter(|row| row.text("kind") == "transfer" && row.text("direction") == "in").collect();
    transfers.sort_by_key(|row| row.number("transfer"));
    transfers
}

#[test]
fn objects_separated_by_idle_time_are_separate_transfers() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    let sizes = [100_000, 3_000_000, 2_000];
    for size in sizes {
        pair.upload(200);
        pair.download(size);
        sleep(THINKING);
    }
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();

    let transfers = sent_by_server(&rows);
    let numbers: Vec<u64> = transfers.iter().map(|row| row.number("transfer")).collect();
    let acked: Vec<u64> = transfers.iter().map(|row| row.number("acked_bytes")).collect();
    assert_eq!((numbers, acked), (vec![0, 1, 2], sizes.map(|size| size as u64).to_vec()));
    for row in &transfers {
        // The link has no delay, and think time is not included.
        let fct_us = row.number("fct_us");
        assert!(fct_us < THINKING.as_micros() as u64, "{row:?}");
        assert_eq!(row.number("duration_us"), fct_us);
    }
    for (earlier, later) in transfers.iter().zip(&transfers[1..]) {
        let gap_us = later.number("start_us") - earlier.number("end_us");
        assert!(gap_us >= 200_000, "{gap_us}");
    }
    let closed = rows.iter().find(|row| row.text("kind") == "close" && row.text("direction") == "in").unwrap();
    assert_eq!(closed.number("acked_bytes"), 3_102_000);
    assert_eq!(closed.maybe("fct_us"), None, "a connection has none");
    assert!(closed.number("busy_us") < closed.number("duration_us") / 2, "it was idle most of the time: {closed:?}");
}

#[test]
fn idle_time_below_the_gap_does_not_end_a_transfer() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&["--idle-gap", "30s"]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    for _ in 0..3 {
        pair.download(10_000);
        sleep(THINKING);
    }
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let transfers = sent_by_server(&rows);
    assert_eq!(transfers.len(), 1, "{transfers:#?}");
    assert_eq!(transfers[0].number("acked_bytes"), 30_000);
}

#[test]
fn an_application_paced_transfer_has_no_completion_time() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    // A live stream: frames with pauses that are shorter than the idle gap.
    for _ in 0..30 {
        pair.server.write_all(&[1; 4_000]).unwrap();
        pair.client.read_exact(&mut [0; 4_000]).unwrap();
        sleep(Duration::from_millis(20));
    }
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let transfers = sent_by_server(&rows);
    assert_eq!(transfers.len(), 1, "{transfers:#?}");
    assert_eq!((transfers[0].number("acked_bytes"), transfers[0].maybe("fct_us")), (120_000, None));
    assert!(transfers[0].fraction("app_limited_share").unwrap() > 0.5);
}

#[test]
fn bytes_acknowledged_after_1_s_and_3_s_are_recorded() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let opened = Instant::now();
    let mut pair = connect(&namespaces, "10.9.8.1");
    pair.download(50_000);
    sleep(Duration::from_millis(1_800).saturating_sub(opened.elapsed()));
    pair.download(70_000);
    sleep(Duration::from_millis(3_300).saturating_sub(opened.elapsed()));
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let closed = rows.iter().find(|row| row.text("kind") == "close" && row.text("direction") == "in").unwrap();
    // A busy machine may delay a transfer past a mark, so the expected bytes follow from the recorded times.
    let transfers = sent_by_server(&rows);
    for (column, mark_us) in [("acked_1s_bytes", 1_000_000), ("acked_3s_bytes", 3_000_000)] {
        let acked_until = |time: &str| -> u64 {
            let before = transfers.iter().filter(|row| row.number(time) <= closed.number("start_us") + mark_us);
            before.map(|row| row.number("acked_bytes")).sum()
        };
        let expected = acked_until("end_us")..=acked_until("start_us");
        assert!(expected.contains(&closed.number(column)), "{column} of {closed:?}, not {expected:?}");
    }
    assert_eq!(transfers.iter().map(|row| row.number("acked_bytes")).sum::<u64>(), 120_000);
    let has_10_s = closed.number("duration_us") >= 10_000_000;
    assert_eq!((closed.maybe("acked_10s_bytes").is_some(), closed.maybe("acked_30s_bytes")), (has_10_s, None));
}
