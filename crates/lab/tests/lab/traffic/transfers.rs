//! Transfers arrive, are timed and are sampled.

use super::plans::{experiment, flow, sizes};
use super::rig::Rig;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use thalweg_plan::plan::{Background, Flow, Load};
use thalweg_units::{Bytes, Rate, Span, Time};

#[test]
fn every_byte_of_every_copy_arrives() {
    let Some(rig) = Rig::new() else { return };
    let plan = experiment(vec![
        Flow { count: 5, ..flow("small", sizes(&[1])) },
        Flow { count: 3, cc: "cubic".to_owned(), ..flow("odd", sizes(&[1_000_003])) },
        Flow { cc: "bbr".to_owned(), ..flow("large", sizes(&[30_000_000])) },
    ]);
    let (outcome, receiver) = rig.run(&plan);
    assert_eq!(outcome.flows.len(), 9);
    for row in &outcome.flows {
        assert!(row.completed, "{row:?}");
        assert_eq!(Some(row.acked_bytes), row.size_bytes);
        assert!(row.end_us >= row.start_us && row.segments > 0, "{row:?}");
        assert!(row.rtt_min_us.is_some() && row.rtt_p50_us.is_some(), "{row:?}");
    }
    assert_eq!(receiver.measured["received_bytes"], 5.0 + 3.0 * 1_000_003.0 + 30_000_000.0);
    assert_eq!(receiver.measured["received_connections"], 9.0);
    assert_eq!(outcome.stopped.measured["connections_failed"], 0.0);
    let doubts = outcome.stopped.untrustworthy;
    assert!(!doubts.iter().any(|doubt| doubt.contains("could not be opened")), "{doubts:?}");
}

#[test]
fn two_thousand_flows_at_once_all_complete() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(vec![Flow { count: 2000, ..flow("many", sizes(&[100_000])) }]);
    plan.sample_interval_ns = Span::from_millis(100);
    let (outcome, receiver) = rig.run(&plan);
    assert_eq!(outcome.flows.iter().filter(|row| row.completed).count(), 2000);
    assert_eq!(receiver.measured["received_bytes"], 2000.0 * 100_000.0);
}

#[test]
fn each_connection_has_its_own_congestion_control() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(vec![
        Flow { cc: "bbr".to_owned(), ..flow("bbr", Load::Unlimited) },
        Flow { cc: "reno".to_owned(), ..flow("reno", Load::Unlimited) },
    ]);
    plan.duration_ns = Some(Span::from_millis(300));
    let (outcome, _) = rig.run(&plan);
    // Of the two algorithms, only BBR paces and reports its state.
    let paced = |flow| outcome.samples.iter().filter(move |row| row.of.flow == flow && row.pacing_rate_bps.is_some());
    assert!(paced(0).count() > 0 && paced(1).count() == 0);
    let bandwidth_rows = |flow| outcome.states.iter().filter(move |row| row.of.flow == flow && row.key == "bw_bps");
    assert!(bandwidth_rows(0).count() > 0 && bandwidth_rows(1).count() == 0);
    let values: Vec<f64> = bandwidth_rows(0).map(|row| row.value).collect();
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]), "a row repeats the value before: {values:?}");
    assert_eq!(
        bandwidth_rows(0).next().map(|row| row.t_us),
        paced(0).next().map(|row| row.t_us),
        "all keys at the first sample"
    );
}

#[test]
fn completion_times_do_not_depend_on_the_polling_times_of_the_generator() {
    let Some(rig) = Rig::new() else { return };
    // The socket accepts 30 kB immediately, but the link takes 0.6 s to send them.
    if rig.limit_rate("400kbit").is_none() {
        return;
    }
    let plan = experiment(vec![flow("slow", sizes(&[30_000]))]);
    let mut receiver = rig.receiver(&plan);
    let mut sender = rig.sender(&plan, &[0]);
    receiver.start();
    sender.start();
    thread::sleep(Duration::from_millis(200));
    sender.signal(Signal::STOP);
    thread::sleep(Duration::from_millis(2000));
    sender.signal(Signal::CONT);
    sender.wait_for("slow");
    let outcome = sender.stop();
    let row = &outcome.flows[0];
    assert!(row.completed);
    assert!((500_000..1_500_000).contains(&row.end_us), "{row:?}");
    assert_eq!(outcome.stopped.measured["ack_stamps_missing"], 0.0);
}

#[test]
fn later_requests_are_counted_separately() {
    let Some(rig) = Rig::new() else { return };
    let load = Load::Requests { size_bytes: Bytes(50_000), think_ns: Span::from_millis(5), count: Some(20) };
    let (outcome, receiver) = rig.run(&experiment(vec![flow("requests", load)]));
    assert_eq!(receiver.measured["received_connections"], 1.0);
    let transfers: Vec<u64> = outcome.flows.iter().map(|row| row.transfer).collect();
    assert_eq!(transfers, (0..20).collect::<Vec<_>>());
    for pair in outcome.flows.windows(2) {
        assert!(pair[1].start_us >= pair[0].end_us + 5_000, "{pair:?}");
    }
    for row in &outcome.flows {
        assert!(row.completed && row.acked_bytes == 50_000, "{row:?}");
        // 50 kB is at most 50 segments, and at least one offloaded segment.
        assert!((1..=50).contains(&row.segments), "{row:?}");
    }
}

#[test]
fn samples_follow_each_connection() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(vec![Flow { count: 2, ..flow("bulk", Load::Unlimited) }]);
    plan.duration_ns = Some(Span::from_millis(500));
    let (outcome, _) = rig.run(&plan);
    let mut series: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for row in &outcome.samples {
        series.entry(row.of.copy).or_default().push((row.t_us, row.acked_bytes));
    }
    assert_eq!(series.len(), 2);
    for rows in series.values() {
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{rows:?}");
        assert!(rows.iter().all(|(t_us, _)| *t_us <= 510_000 + 100_000));
    }
    let measured = &outcome.stopped.measured;
    let instants = measured["samples_taken"] + measured["samples_late"];
    assert_eq!(instants, 51.0, "one every 10 ms from 0 to 500 ms: {measured:?}");
    for row in &outcome.flows {
        assert!(!row.completed && row.size_bytes.is_none() && row.end_us == 500_000, "{row:?}");
    }
}

#[test]
fn background_traffic_has_the_configured_rate() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(Vec::new());
    plan.background = vec![Background {
        rate_bps: Rate::from_mbps(24),
        start_ns: Time(100_000_000),
        stop_ns: Some(Time(600_000_000)),
        up: false,
    }];
    plan.duration_ns = Some(Span::from_millis(700));
    let (outcome, receiver) = rig.run(&plan);
    // 24 Mbit/s is 2000 packets of 1500 bytes per second, for half a second.
    let measured = &outcome.stopped.measured;
    assert_eq!(measured["background_sent_packets"] + measured["background_late_packets"], 1000.0, "{measured:?}");
    assert!(measured["background_late_packets"] < 500.0, "{measured:?}");
    assert_eq!(receiver.measured["received_datagrams"], measured["background_sent_packets"]);
}
