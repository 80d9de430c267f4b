//! Sets the clock while the agent records, in a guest, because the clock is that of the entire machine.

use crate::common::{Namespace, wait_until};
use crate::on_kernels::IS_GUEST;
use crate::rows::Row;
use crate::stage::{Agent, Stage};
use crate::traffic::{Pair, connect};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const HOUR_S: i64 = 3600;

/// Tolerance for a guest that pauses between two readings.
const SLACK_US: u64 = 1_000_000;

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().try_into().unwrap()
}

fn step(agent: &Agent, by_s: i64, steps: u64) {
    let now = clock_gettime(ClockId::Realtime);
    clock_settime(ClockId::Realtime, Timespec { tv_sec: now.tv_sec + by_s, ..now }).expect("root may set it");
    wait_until("the step is counted", || agent.counter("clock_steps") == steps);
}

/// Opens and closes a connection; returns the client's port, and the times before and after it.
fn carry(agent: &Agent, namespaces: &(Namespace, Namespace), closed: u64) -> (u64, [u64; 2]) {
    let begun_us = now_us();
    let mut pair = connect(namespaces, "10.9.8.1");
    pair.download(10_000);
    let port = pair.client_port();
    pair.close_by_server();
    agent.wait_for_closed(closed);
    (port, [begun_us, now_us()])
}

/// Waits until all rows are in files, and returns the largest flush number.
fn flushed(agent: &Agent, folder: &Path) -> u64 {
    wait_until("rows are written", || agent.status()["writer"]["rows_waiting"] == 0);
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let number = |name: String| name.strip_suffix(".parquet")?.rsplit('-').next()?.parse().ok();
    names.filter_map(number).max().expect("a file")
}

#[test]
fn timestamps_follow_clock_changes_and_durations_do_not() {
    if std::env::var_os(IS_GUEST).is_none() {
        return eprintln!("this machine's clock is not set: guests run this");
    }
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let folder = stage.path("records");
    let opened = Instant::now();
    let mut across = connect(&namespaces, "10.9.8.1");
    across.download(10_000);

    let before = carry(&agent, &namespaces, 2);
    step(&agent, HOUR_S, 1);
    let later = carry(&agent, &namespaces, 4);
    let number = flushed(&agent, &folder);
    step(&agent, -2 * HOUR_S, 2);
    let earlier = carry(&agent, &namespaces, 6);
    across.download(10_000);
    let port = across.client_port();
    Pair::close_by_server(across);
    agent.wait_for_closed(8);
    let lasted = opened.elapsed();
    assert!(flushed(&agent, &folder) > number, "a file that is written later has a larger number");
    let rows = agent.end();

    let closed = |port: u64| -> Vec<&Row> {
        let is_of = |row: &&Row| [row.number("local_port"), row.number("remote_port")].contains(&port);
        rows.iter().filter(|row| row.text("kind") == "close").filter(is_of).collect()
    };
    assert_eq!(rows.iter().filter(|row| row.text("kind") == "close").count(), 8, "each once: {rows:#?}");
    for (port, [from_us, to_us]) in [before, later, earlier] {
        for row in closed(port) {
            let (start_us, end_us) = (row.number("start_us"), row.number("end_us"));
            assert!(start_us + SLACK_US >= from_us && end_us <= to_us + SLACK_US, "{from_us} to {to_us}: {row:?}");
        }
    }
    for row in closed(port) {
        let duration = Duration::from_micros(row.number("duration_us"));
        assert!(duration <= lasted, "{duration:?} of {lasted:?}: a clock step was counted as duration");
        assert_eq!(row.number("end_us") - row.number("start_us"), row.number("duration_us"));
    }
}
