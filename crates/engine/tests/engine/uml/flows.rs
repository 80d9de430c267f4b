//! Flows in virtual time.

use super::{bench, is_available};
use crate::common::{Bench, events, names, plan_of};
use crate::stage::{Outcome, acked_bytes, experiment, flow, number, text};
use serde_json::{Value, json};

/// Number of bytes that 10 Mbit/s carry in 1.5 s.
const CAPACITY: f64 = 1_875_000.0;

fn outcome(experiment: Value) -> Outcome {
    let bench = bench([experiment]);
    let output = bench.run("run", &[]).output().unwrap();
    Outcome::new(bench, &output)
}

fn of(cc: &str, seed: u64) -> Value {
    let mut experiment = experiment();
    experiment["seed"] = json!(seed);
    experiment["flows"] = json!([flow("large", cc)]);
    experiment
}

#[test]
fn a_cubic_and_a_bbr_flow_fill_the_path_and_the_queue_stays_within_the_buffer() {
    if !is_available() {
        return;
    }
    for cc in ["cubic", "bbr"] {
        let outcome = outcome(of(cc, 1));
        let flow = &outcome.flow("large")[0];
        let share = number(&flow["acked_bytes"]) / CAPACITY;
        // 1448 of 1500 bytes are payload, and the first round trips do not fill the path.
        assert!((0.85..=0.9654).contains(&share), "{cc}: {share} of the capacity");
        // The minimum is 20 ms plus a SYN of 60 bytes at 10 Mbit/s and the hosts' 10 us.
        let least_us = number(&flow["rtt_min_us"]);
        assert!((20_058.0..=20_060.0).contains(&least_us), "{cc}: {least_us} us");
        let queue: Vec<f64> = outcome.rows("queue").iter().map(|row| number(&row["backlog_bytes"])).collect();
        let most = queue.iter().copied().fold(0.0, f64::max);
        assert!((1_500.0..=37_500.0).contains(&most), "{cc}: {most} bytes");
        assert_eq!(outcome.events("untrustworthy").len(), 0);
    }
}

#[test]
fn the_same_seed_reproduces_all_rows_and_another_seed_loses_other_packets() {
    if !is_available() {
        return;
    }
    let lossy = |seed| {
        let mut experiment = of("cubic", seed);
        experiment["forward"]["loss"]["ratio"] = json!(0.01);
        let flows = outcome(experiment).rows("flows");
        (acked_bytes(&flows), number(&flows[0]["retransmits"]), number(&flows[0]["rtt_mean_us"]))
    };
    let first = lossy(1);
    assert_eq!(first, lossy(1));
    assert!((2..5).any(|seed| lossy(seed) != first), "three other seeds gave the same");
}

#[test]
fn several_experiments_run_concurrently() {
    if !is_available() {
        return;
    }
    let repetitions = (0..3).map(|repetition| {
        let mut experiment = of("cubic", 5);
        experiment["repetition"] = json!(repetition);
        experiment["flows"][0]["load"] = json!({"kind": "sizes", "sizes_bytes": [100_000]});
        experiment
    });
    let bench = bench(repetitions);
    let output = bench.run("run", &["--threads", "3"]).output().unwrap();
    let events = events(&output);
    assert_eq!(names(&events).iter().filter(|name| **name == "finished").count(), 3, "{events:#?}");
    assert_eq!(crate::stage::rows(&bench.path("run"), "flows").len(), 3);
    let log = std::fs::read_to_string(bench.path("run/commands.log")).unwrap();
    assert_eq!(log.matches("htb rate 10000000bit burst 2 ").count(), 3, "{log}");
}

#[test]
fn packets_of_a_host_pass_through_its_qdisc() {
    if !is_available() {
        return;
    }
    let mut experiment = of("cubic", 1);
    experiment["hosts"]["sender"]["qdisc"] = json!("fq");
    let outcome = outcome(experiment);
    let segments = acked_bytes(&outcome.flow("large")) / 1448.0;
    let sent = outcome.events("finished")[0]["measured"]["host_qdisc_sent_packets"].as_f64().expect("it has counted");
    assert!(sent >= segments && segments > 0.0, "{sent} packets for {segments} segments");
}

/// Returns CoDel with Linux's defaults except for ECN, on a link with a buffer of 1000 packets.
fn codel(ecn: bool) -> Value {
    let mut experiment = of("cubic", 1);
    experiment["duration_ns"] = json!(8_000_000_000_u64);
    experiment["forward"]["buffer"] = json!({"kind": "packets", "packets": 1000});
    experiment["forward"]["queue"] = json!({
        "kind": "codel", "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": ecn, "ce_threshold_ns": null
    });
    experiment["flows"][0]["ecn"] = json!(ecn);
    experiment
}

/// Returns the last row of the forward queue, and the mean of its backlog from 4 s on, in milliseconds at 10 Mbit/s.
fn queue(outcome: &Outcome) -> (std::collections::BTreeMap<String, parquet::record::Field>, f64) {
    let mut rows = outcome.rows("queue");
    rows.retain(|row| row["link"] == crate::stage::text("forward"));
    rows.sort_by_key(|row| number(&row["t_us"]) as u64);
    let late = rows.iter().filter(|row| number(&row["t_us"]) > 4e6);
    let backlog: Vec<f64> = late.map(|row| number(&row["backlog_bytes"])).collect();
    let mean_ms = backlog.iter().sum::<f64>() / backlog.len() as f64 / 1250.0;
    (rows.pop().unwrap(), mean_ms)
}

#[test]
fn codel_keeps_the_delay_below_that_of_a_fifo_and_drops_before_its_limit() {
    if !is_available() {
        return;
    }
    let (last, delay_ms) = queue(&outcome(codel(false)));
    let dropped = number(&last["dropped_packets"]);
    assert!(dropped > 0.0 && number(&last["early_drops"]) == dropped, "{last:?}");
    assert_eq!(number(&last["marked_packets"]), 0.0);
    // The delay of one CUBIC flow over 20 ms stays near the target of 5 ms.
    assert!((1.0..12.0).contains(&delay_ms), "{delay_ms} ms");
    let mut fifo = codel(false);
    fifo["forward"]["queue"] = json!({"kind": "fifo"});
    let (last, delay_ms) = queue(&outcome(fifo));
    assert_eq!(number(&last["early_drops"]), 0.0);
    assert!(delay_ms > 100.0, "{delay_ms} ms");
}

#[test]
fn a_dctcp_receiver_echoes_each_mark_and_a_classic_one_for_a_full_round_trip() {
    if !is_available() {
        return;
    }
    let reported = |cc: &str| {
        let mut experiment = codel(true);
        experiment["flows"][0]["cc"] = json!(cc);
        let outcome = outcome(experiment);
        let marks = number(&queue(&outcome).0["marked_packets"]);
        assert!(marks > 3.0, "{cc}: {marks} marks");
        number(&outcome.rows("flows")[0]["marked_segments"]) / marks
    };
    // An acknowledgement covers up to two segments, of which one may be marked (RFC 8257, section 3.2; RFC 3168,
    // section 6.1.3).
    let (dctcp, cubic) = (reported("dctcp"), reported("cubic"));
    assert!(dctcp <= 2.0, "dctcp: {dctcp} segments reported for a mark");
    assert!(cubic > 4.0, "cubic: {cubic} segments reported for a mark");
}

#[test]
fn codel_marks_a_flow_that_negotiated_ecn_instead_of_dropping_its_packets() {
    if !is_available() {
        return;
    }
    let outcome = outcome(codel(true));
    let (last, delay_ms) = queue(&outcome);
    assert!(number(&last["marked_packets"]) > 0.0, "{last:?}");
    assert_eq!(number(&last["dropped_packets"]), 0.0, "{last:?}");
    assert_eq!(number(&outcome.flow("large")[0]["retransmits"]), 0.0);
    assert!((1.0..12.0).contains(&delay_ms), "{delay_ms} ms");
}

#[test]
fn a_step_of_the_delay_and_a_policer_take_effect_and_are_counted() {
    if !is_available() {
        return;
    }
    let mut experiment = of("reno", 1);
    experiment["duration_ns"] = json!(4_000_000_000_u64);
    experiment["forward"]["policer"] = json!({"rate_bps": 4_000_000, "burst_bytes": 30_000, "after": false});
    experiment["forward"]["profile"] = json!("nearer");
    let (far, near) = (json!(40_000_000), json!(10_000_000));
    let point = |at_ms: u64, delay: &Value| {
        json!({
            "at_ns": at_ms * 1_000_000, "delay_ns": delay, "rate_bps": null, "loss": null
        })
    };
    let profile = json!({"period_ns": null, "points": [point(0, &far), point(2000, &near)]});
    let mut plan = crate::common::plan_of([experiment]);
    plan["engine"] = json!("uml");
    plan["profiles"] = json!({"nearer": profile});
    let bench = crate::common::Bench::with(&plan);
    let output = bench.run("run", &[]).output().unwrap();
    let outcome = Outcome::new(bench, &output);
    let (last, _) = queue(&outcome);
    // 4 Mbit/s for 4 s is 2 MB. Packets that the policer drops never enter the queue.
    assert!(number(&last["policed_packets"]) > 0.0 && number(&last["dropped_packets"]) == 0.0, "{last:?}");
    assert!(number(&last["sent_bytes"]) < 2_030_000.0, "{last:?}");
    let min_rtt_us = |from_s: f64, to_s: f64| {
        let rows = outcome.rows("samples").into_iter();
        let rows = rows.filter(|row| (from_s * 1e6..to_s * 1e6).contains(&number(&row["t_us"])));
        let rows = rows.filter(|row| row["srtt_us"] != parquet::record::Field::Null);
        rows.map(|row| number(&row["srtt_us"])).fold(f64::INFINITY, f64::min)
    };
    // 10 ms in the reverse direction; forward 40 ms in the first two seconds, and 10 ms after that.
    let (before, after) = (min_rtt_us(0.0, 2.0), min_rtt_us(2.5, 4.0));
    assert!((50_000.0..60_000.0).contains(&before) && (20_000.0..30_000.0).contains(&after), "{before} {after} us");
}

/// Returns a download and, depending on `up`, an upload or a second download, over 10 Mbit/s down and 1 Mbit/s up, both
/// with queues of 50 packets.
fn two_way(up: bool) -> Value {
    let mut experiment = of("reno", 1);
    experiment["duration_ns"] = json!(6_000_000_000_u64);
    for (link, rate) in [("forward", 10_000_000), ("reverse", 1_000_000)] {
        experiment[link]["capacity"] = json!({"kind": "steps", "steps": [{"at_ns": 0, "rate_bps": rate}]});
        experiment[link]["buffer"] = json!({"kind": "packets", "packets": 50});
    }
    experiment["flows"] = json!([flow("down", "reno"), flow("up", "reno")]);
    experiment["flows"][1]["start_ns"] = json!(500_000_000);
    experiment["flows"][1]["up"] = json!(up);
    experiment
}

fn simulated(experiment: Value) -> [f64; 2] {
    let experiment = serde_json::from_value(experiment).unwrap();
    let mut rows = thalweg_trace::Memory::default();
    thalweg_sim::run(&experiment, &Default::default(), &mut rows, &|| false).unwrap();
    ["down", "up"]
        .map(|name| rows.flows.iter().filter(|row| &*row.flow == name).map(|row| row.acked_bytes as f64).sum())
}

/// Maximum relative difference between Linux and the simulator in the bytes of either flow. The flows' losses have
/// different phases, which depend on single packets.
const APART: f64 = 0.25;

#[test]
fn an_upload_delays_a_download_as_in_the_simulator() {
    if !is_available() {
        return;
    }
    let outcome = outcome(two_way(true));
    let linux = ["down", "up"].map(|name| acked_bytes(&outcome.flow(name)));
    let simulated = simulated(two_way(true));
    for (linux, simulated) in linux.iter().zip(simulated) {
        assert!((linux / simulated - 1.0).abs() < APART, "Linux {linux}, simulator {simulated}");
    }
    // 1 Mbit/s for 5.5 s is 687.5 kB.
    assert!((0.6 * 687.5e3..687.5e3).contains(&linux[1]), "{linux:?}");
    let both_down = simulated_total(two_way(false));
    assert!(linux[0] < 0.75 * both_down, "{linux:?}, both down {both_down}");
}

fn simulated_total(experiment: Value) -> f64 {
    simulated(experiment).iter().sum()
}

#[test]
fn goodput_follows_changing_path_conditions() {
    if !is_available() {
        return;
    }
    let mut experiment = of("cubic", 1);
    experiment["forward"]["capacity"] = json!({"kind": "profile"});
    experiment["forward"]["profile"] = json!("drive");
    let point = |at_ms: u64, mbps: u64| {
        json!({
            "at_ns": at_ms * 1_000_000, "rate_bps": mbps * 1_000_000, "delay_ns": null, "loss": null
        })
    };
    let mut plan = plan_of([experiment]);
    plan["engine"] = json!("uml");
    plan["profiles"] = json!({"drive": {"period_ns": null, "points": [point(0, 10), point(750, 2)]}});
    let bench = Bench::with(&plan);
    let output = bench.run("run", &[]).output().unwrap();
    let rows = Outcome::new(bench, &output).rows("queue");
    let sent_by = |t_us: f64| {
        let sent = rows.iter().filter(|row| row["link"] == text("forward") && number(&row["t_us"]) <= t_us);
        sent.map(|row| number(&row["sent_bytes"])).fold(0.0, f64::max)
    };
    let (first, second) = (sent_by(750_000.0), sent_by(1_500_000.0) - sent_by(750_000.0));
    // 10 Mbit/s and 2 Mbit/s for 0.75 s each; slow start uses less of the first period.
    assert!((600_000.0..=937_500.0).contains(&first), "{first} bytes");
    assert!((170_000.0..=200_000.0).contains(&second), "{second} bytes");
}

/// Behind a delay stage, the netem with slots is a child, for which Linux rejects a size table.
#[test]
fn aggregation_in_both_directions_still_fills_the_path() {
    if !is_available() {
        return;
    }
    let mut experiment = of("cubic", 1);
    for way in ["forward", "reverse"] {
        experiment[way]["aggregation"] = json!({ "interval_ns": 4_000_000, "max_bytes": null });
    }
    let outcome = outcome(experiment);
    let flow = &outcome.flow("large")[0];
    let share = number(&flow["acked_bytes"]) / CAPACITY;
    assert!((0.7..=0.9654).contains(&share), "{share} of the capacity");
    // The path takes 20 ms, and packets wait for the next slot.
    let mean_us = number(&flow["rtt_mean_us"]);
    assert!(mean_us > 22_000.0, "{mean_us} us");
}

/// Returns an experiment of three seconds with a video, two pages, a call, RPC and probes.
fn applications() -> Value {
    let mut experiment = of("cubic", 3);
    experiment["duration_ns"] = json!(3_000_000_000_u64);
    let apps = [
        json!({
            "kind": "video", "bitrates_bps": [500_000, 1_000_000], "segment_ns": 500_000_000,
            "buffer_ns": 2_000_000_000
        }),
        json!({"kind": "web", "objects": 8, "depth": 3, "sizes_bytes": [2_000, 9_000], "connections": 3, "pages": 2,
            "think_ns": 300_000_000}),
        json!({"kind": "call", "frame_bytes": 2_000, "interval_ns": 40_000_000, "freeze_ns": 150_000_000}),
        json!({"kind": "rpc", "mean_gap_ns": 50_000_000, "sizes_bytes": [300, 5_000], "connections": 2}),
        json!({"kind": "probe", "size_bytes": 64, "interval_ns": 100_000_000}),
    ];
    let flows = apps.map(|app| {
        let mut flow = flow(app["kind"].as_str().unwrap(), "cubic");
        flow["load"] = json!({"kind": "app", "app": app});
        flow
    });
    experiment["flows"] = json!(flows);
    experiment
}

#[test]
fn applications_send_the_same_data_as_in_the_simulator_with_the_same_latency() {
    if !is_available() {
        return;
    }
    let real = outcome(applications());
    let simulated = Bench::with(&plan_of([applications()]));
    let output = simulated.run("run", &[]).output().unwrap();
    let simulated = Outcome::new(simulated, &output);
    for app in ["rpc", "probe", "call", "web", "video"] {
        let [ours, theirs] = [&real, &simulated].map(|outcome| messages(outcome, app));
        assert!(ours.len() >= 8, "{app}: {ours:?}");
        let [sizes, others] = [&ours, &theirs].map(|rows| rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>());
        assert_eq!(sizes, others, "{app}");
        let [median, other] = [&ours, &theirs].map(|rows| {
            let mut times: Vec<f64> = rows.iter().map(|row| row.1).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        assert!((median - other).abs() < 0.15 * other, "{app}: {median} us, and {other} us in the simulator");
    }
}

/// Returns item, size, bitrate and stall of each message that an application sent before 2.5 s, sorted as text, and its
/// completion time in us.
fn messages(outcome: &Outcome, app: &str) -> Vec<(String, f64)> {
    // Messages that are due at the end may or may not be sent.
    let rows = outcome.flow(app).into_iter().filter(|row| number(&row["start_us"]) < 2.5e6);
    let mut transfers: Vec<(String, f64)> = rows
        .map(|row| {
            let what = ["item", "size_bytes", "bitrate_bps", "stall_us"].map(|key| row[key].to_string());
            (what.join(" "), number(&row["fct_us"]))
        })
        .collect();
    // The connection that carries an object of a page depends on the arrival of the other objects.
    transfers.sort_by(|one, other| one.0.cmp(&other.0));
    transfers
}
