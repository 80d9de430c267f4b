//! Results of flows.

use crate::stage::{
    Outcome, acked_bytes, as_ordinary_user, bench, experiment, flow, is_available, number, programs, text,
};
use parquet::record::Field;
use serde_json::json;

/// Number of bytes that the path carries in 1.5 s, the duration of an experiment.
const FULL: f64 = 10e6 / 8.0 * 1.5;

fn check_one_cubic_flow(outcome: &Outcome) {
    let flows = outcome.rows("flows");
    assert_eq!(flows.len(), 1);
    let row = &flows[0];
    assert_eq!((&row["flow"], &row["cc"], &row["host"]), (&text("large"), &text("cubic"), &text("sender")));
    assert_eq!((&row["completed"], &row["fct_us"]), (&Field::Bool(false), &Field::Null));
    let goodput = number(&row["goodput_bps"]);
    assert!((6e6..10e6).contains(&goodput), "{goodput} of 10 Mbit/s");
    let rtt_ms = number(&row["rtt_min_us"]) / 1e3;
    assert!((20.0..40.0).contains(&rtt_ms), "{rtt_ms} of 20 ms");
    assert_eq!(number(&row["end_us"]).round(), number(&row["end_us"]).clamp(1_400_000.0, 2_500_000.0));

    let samples = outcome.rows("samples");
    assert!(samples.len() > 50, "{} samples in 1.5 s, every 10 ms", samples.len());
    assert!(samples.iter().all(|row| row["flow"] == text("large") && number(&row["cwnd_packets"]) >= 1.0));
    let mut forward: Vec<_> = outcome.rows("queue").into_iter().filter(|row| row["link"] == text("forward")).collect();
    forward.sort_by_key(|row| number(&row["t_us"]) as u64);
    assert!(forward.len() > 50, "{} rows of the queue", forward.len());
    assert!(forward.is_sorted_by_key(|row| number(&row["sent_bytes"]) as u64), "what was sent cannot become less");
    let sent = number(&forward.last().unwrap()["sent_bytes"]);
    assert!((0.6 * FULL..1.4 * FULL).contains(&sent), "{sent} of {FULL}");
    assert!(forward.iter().any(|row| number(&row["backlog_bytes"]) > 10_000.0), "CUBIC fills the queue");

    let finished = outcome.events("finished")[0];
    assert_eq!(finished["simulated_s"], 1.5);
    assert!(finished["packets"].as_u64().unwrap() > 1000, "{finished}");
    assert!(finished["measured"]["relay_lateness_p99_us"].is_number(), "{finished}");
    // Whether the result is trustworthy depends on the load of this machine, but the event and the table must agree.
    let reasons: Vec<&str> = outcome.events("untrustworthy").iter().map(|it| it["reason"].as_str().unwrap()).collect();
    assert_eq!(row["untrustworthy"], if reasons.is_empty() { Field::Null } else { text(&reasons.join("; ")) });
}

#[test]
fn one_cubic_flow_reaches_the_path_rate_and_appears_in_every_table() {
    if is_available() {
        check_one_cubic_flow(&Outcome::of(experiment()));
    }
}

/// Runs CUBIC over a relay with a CoDel queue that marks, and with a buffer that is never full.
fn marking(asks: bool) -> Outcome {
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(4_000_000_000_u64);
    experiment["engine"]["link"] = json!("relay");
    experiment["forward"]["buffer"] = json!({"kind": "packets", "packets": 1000});
    experiment["forward"]["queue"] = json!({
        "kind": "codel", "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": true, "ce_threshold_ns": null
    });
    experiment["flows"][0]["ecn"] = json!(asks);
    Outcome::of(experiment)
}

#[test]
fn the_relay_marks_packets_of_ecn_flows_and_drops_those_of_others() {
    if !is_available() {
        return;
    }
    let most = |outcome: &Outcome, column: &str| {
        let rows = outcome.rows("queue").into_iter().filter(|row| row["link"] == text("forward"));
        rows.map(|row| number(&row[column])).fold(0.0, f64::max)
    };
    let outcome = marking(true);
    let marks = most(&outcome, "marked_packets");
    assert!(marks > 0.0);
    assert_eq!(most(&outcome, "dropped_packets"), 0.0);
    // Every mark with a wrong checksum would cause a retransmission; pauses of a busy machine cause a few probes.
    let retransmits = number(&outcome.flow("large")[0]["retransmits"]);
    assert!(retransmits < marks, "{retransmits} retransmits, {marks} marks");
    let outcome = marking(false);
    assert_eq!(most(&outcome, "marked_packets"), 0.0);
    assert!(most(&outcome, "early_drops") > 0.0);
    assert!(number(&outcome.flow("large")[0]["retransmits"]) > 0.0);
}

#[test]
fn packets_of_a_host_pass_through_its_qdisc() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    let without = Outcome::of(experiment.clone());
    assert!(without.events("finished")[0]["measured"]["host_qdisc_sent_packets"].is_null());
    experiment["hosts"]["sender"]["qdisc"] = json!("pfifo");
    let outcome = Outcome::of(experiment);
    let segments = acked_bytes(&outcome.rows("flows")) / 1448.0;
    let sent = outcome.events("finished")[0]["measured"]["host_qdisc_sent_packets"].as_f64().expect("it has counted");
    assert!(sent >= segments && segments > 0.0, "{sent} packets for {segments} segments");
    let log = std::fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.contains("nsenter --net=/run/netns/sender tc qdisc replace dev eth0 root handle 1: pfifo"), "{log}");
}

#[test]
fn an_unprivileged_user_gets_the_same_results() {
    if !is_available() {
        return;
    }
    let bench = bench([experiment()]);
    let Some(mut command) = as_ordinary_user(&bench) else { return };
    let output = command.output().unwrap();
    check_one_cubic_flow(&Outcome::new(bench, &output));
}

#[test]
fn bbr_and_cubic_share_the_path_and_bbr_reports_its_state() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["flows"] = json!([flow("cubic", "cubic"), flow("bbr", "bbr")]);
    let outcome = Outcome::of(experiment);
    let [cubic, bbr] = ["cubic", "bbr"].map(|name| acked_bytes(&outcome.flow(name)));
    assert!(cubic > 0.05 * FULL && bbr > 0.05 * FULL, "cubic {cubic}, bbr {bbr} of {FULL}");
    assert!((0.6 * FULL..1.1 * FULL).contains(&(cubic + bbr)), "cubic {cubic}, bbr {bbr} of {FULL}");
    let state = outcome.rows("state");
    assert!(state.iter().any(|row| row["flow"] == text("bbr") && row["key"] == text("pacing_gain")));
    assert!(state.iter().all(|row| row["flow"] == text("bbr") || row["key"] != text("pacing_gain")));
}

#[test]
fn a_flow_with_extra_rtt_has_a_separate_host_and_a_correspondingly_longer_rtt() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["flows"] = json!([flow("near", "cubic"), flow("far", "cubic")]);
    experiment["flows"][1]["extra_rtt_ns"] = json!(30_000_000);
    let outcome = Outcome::of(experiment);
    let [near, far] = ["near", "far"].map(|name| number(&outcome.flow(name)[0]["rtt_min_us"]) / 1e3);
    assert!((20.0..35.0).contains(&near), "{near} ms");
    assert!((25.0..35.0).contains(&(far - near)), "{far} ms - {near} ms");
    assert!(outcome.rows("flows").iter().all(|row| row["host"] == text("sender")));
}

#[test]
fn background_traffic_takes_its_share() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["background"] = json!([{"rate_bps": 6_000_000, "start_ns": 0, "stop_ns": null}]);
    let outcome = Outcome::of(experiment);
    let large = acked_bytes(&outcome.flow("large"));
    assert!((0.1 * FULL..0.5 * FULL).contains(&large), "{large} of {FULL}, of which 60 % are UDP");
    let received = outcome.events("finished")[0]["measured"]["received_datagrams"].as_f64().unwrap();
    assert!((0.3 * FULL..0.7 * FULL).contains(&(received * 1500.0)), "{received} datagrams");
}

#[test]
fn poisson_arrivals_open_many_connections_that_complete() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    let flow = &mut experiment["flows"][0];
    flow["load"] = json!({"kind": "sizes", "sizes_bytes": [2_000, 10_000]});
    flow["repeat"] = json!({"kind": "poisson", "mean_gap_ns": 10_000_000, "until": null, "count": 100});
    experiment["duration_ns"] = json!(null);
    let outcome = Outcome::of(experiment);
    let rows = outcome.rows("flows");
    assert_eq!(rows.len(), 100, "a row for each connection");
    assert!(rows.iter().all(|row| row["completed"] == Field::Bool(true)));
    for row in &rows {
        assert!(number(&row["fct_us"]) > 20_000.0, "no transfer takes less than a round trip: {row:?}");
        assert_eq!(row["acked_bytes"], row["size_bytes"]);
    }
    let sizes: std::collections::BTreeSet<u64> = rows.iter().map(|row| number(&row["size_bytes"]) as u64).collect();
    assert_eq!(sizes, [2_000, 10_000].into());
}

#[test]
fn a_flow_that_lasts_until_a_flow_of_another_host_ends_stops_with_it() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(null);
    experiment["flows"] = json!([flow("large", "cubic"), flow("medium", "cubic")]);
    experiment["flows"][0]["load"] = json!({"kind": "sizes", "sizes_bytes": [2_000_000]});
    experiment["flows"][1]["extra_rtt_ns"] = json!(10_000_000);
    experiment["flows"][1]["load"] = json!({"kind": "sizes", "sizes_bytes": [5_000]});
    experiment["flows"][1]["repeat"] = json!({"kind": "gap", "gap_ns": 10_000_000, "until": "large", "count": null});
    let outcome = Outcome::of(experiment);
    let end = number(&outcome.flow("large")[0]["fct_us"]);
    let medium = outcome.flow("medium");
    assert!(medium.len() > 2, "{} connections", medium.len());
    let last = medium.iter().map(|row| number(&row["start_us"])).fold(0.0, f64::max);
    // The event `over` passes through the engine, which may wait for a CPU on a busy machine.
    assert!(last < end + 3_000_000.0, "{last} after the end at {end}");
    assert!(medium.iter().all(|row| row["completed"] == Field::Bool(true)));
}

#[test]
fn two_engines_at_once_do_not_see_each_other() {
    if !is_available() {
        return;
    }
    let benches = [bench([experiment()]), bench([experiment()])];
    let start = |bench: &crate::common::Bench| {
        let mut command = bench.run("run", &[]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let running = benches.each_ref().map(start);
    for (bench, child) in benches.into_iter().zip(running) {
        let outcome = Outcome::new(bench, &child.wait_with_output().unwrap());
        let large = acked_bytes(&outcome.flow("large"));
        assert!((0.6 * FULL..1.1 * FULL).contains(&large), "{large} of {FULL}");
    }
}

#[test]
fn disturbances_of_an_experiment_are_reported_in_the_table_and_as_an_event() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    let mut crash = programs("crash", 4434, &["sleep", "1000"], &["false"]);
    crash["program"]["ready"] = json!({"kind": "after", "after_ns": 0});
    experiment["flows"].as_array_mut().unwrap().push(crash);
    let outcome = Outcome::of(experiment);
    let reasons: Vec<&str> = outcome.events("untrustworthy").iter().map(|it| it["reason"].as_str().unwrap()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("client of the flow `crash`")), "{reasons:?}");
    assert_eq!(outcome.flow("large")[0]["untrustworthy"], text(&reasons.join("; ")));
}

/// Returns a path whose reverse link has 2 Mbit/s and a queue of 20 packets, with a flow in each direction.
fn two_way() -> serde_json::Value {
    let mut experiment = experiment();
    experiment["reverse"]["capacity"] = json!({"kind": "steps", "steps": [{"at_ns": 0, "rate_bps": 2_000_000}]});
    experiment["reverse"]["buffer"] = json!({"kind": "packets", "packets": 20});
    experiment["flows"] = json!([flow("down", "cubic"), flow("up", "reno")]);
    experiment["flows"][1]["up"] = json!(true);
    experiment
}

#[test]
fn an_upload_fills_the_reverse_path_alongside_a_download() {
    if !is_available() {
        return;
    }
    let outcome = Outcome::of(two_way());
    let (down, up) = (outcome.flow("down"), outcome.flow("up"));
    assert_eq!((&down[0]["direction"], &up[0]["direction"]), (&text("down"), &text("up")));
    // 2 Mbit/s for 1.5 s is 375 kB. The down flow's acknowledgements and the first round trips take the rest of the
    // capacity.
    let up = acked_bytes(&up);
    assert!((0.5 * 375e3..375e3).contains(&up), "{up} of 375 kB");
    assert!(acked_bytes(&down) > 0.2 * FULL, "{} of {FULL}", acked_bytes(&down));
    let queue = outcome.rows("queue");
    let full = |link: &str| {
        let backlogs = queue.iter().filter(|row| row["link"] == text(link)).map(|row| number(&row["backlog_packets"]));
        backlogs.fold(0.0, f64::max)
    };
    assert!(full("reverse") >= 18.0, "{} packets of 20", full("reverse"));
    let samples = outcome.rows("samples");
    assert!(["down", "up"].iter().all(|name| samples.iter().any(|row| row["flow"] == text(name))));
}

#[test]
fn udp_uploads_arrive_at_the_sending_host() {
    if !is_available() {
        return;
    }
    let mut experiment = two_way();
    experiment["flows"] = json!([]);
    experiment["background"] =
        json!([{"rate_bps": 1_200_000, "start_ns": 0, "stop_ns": 1_000_000_000_u64, "up": true}]);
    let outcome = Outcome::of(experiment);
    let measured = &outcome.events("finished")[0]["measured"];
    // 1.2 Mbit/s is 100 packets of 1500 bytes per second.
    let [sent, late, received] = ["background_sent_packets", "background_late_packets", "received_datagrams"]
        .map(|name| measured[name].as_f64().unwrap_or_else(|| panic!("{name} in {measured}")));
    assert_eq!(sent + late, 100.0);
    assert!(received >= sent - 1.0 && sent > 50.0, "{measured}");
    let reverse = outcome.rows("queue").into_iter().filter(|row| row["link"] == text("reverse"));
    let bytes = reverse.map(|row| number(&row["sent_bytes"])).fold(0.0, f64::max);
    assert_eq!(bytes, received * 1500.0);
}
