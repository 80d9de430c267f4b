//! Tests that scenarios are executed as written: flows start, repeat, stop and share.

use crate::support::{self, bulk, of, run, share};
use std::collections::BTreeMap;
use thalweg_plan::plan::{Background, Capacity, Experiment, Flow, Kernel, Load, Repeat, Step, Traces};
use thalweg_sim::Error;
use thalweg_trace::StateRow;
use thalweg_units::{Bytes, Rate, Span, Time};

const MBPS_20: Rate = Rate::from_mbps(20);
const MS_40: Span = Span::from_millis(40);

fn with_series(repeat: Repeat) -> Experiment {
    let mut experiment = support::experiment();
    let long = experiment.flows[0].clone();
    let short = Flow {
        name: "short".to_owned(),
        start_ns: Time(500_000_000),
        load: Load::Sizes { sizes_bytes: vec![Bytes(50_000)] },
        repeat,
        ..long
    };
    experiment.flows.push(short);
    experiment
}

fn gap(until: Option<&str>, count: Option<u32>) -> Repeat {
    Repeat::Gap { gap_ns: Span::from_millis(100), until: until.map(str::to_owned), count }
}

#[test]
fn a_sized_flow_completes_and_ends_the_experiment() {
    let rows = run(&support::experiment());
    let row = &rows.flows[0];
    assert_eq!((row.completed, row.acked_bytes, row.size_bytes), (true, 5_000_000, Some(5_000_000)));
    // 5 MB at 20 Mbit/s less headers take 2.07 s; handshake and slow start take additional time.
    let fct = row.fct_us.expect("it completed") as f64 / 1e6;
    assert!((2.1..3.0).contains(&fct), "{fct}");
    assert_eq!(rows.queue.last().map(|queue| queue.t_us), Some(row.end_us));
}

#[test]
fn a_series_keeps_its_gap_and_ends_with_the_other_flow() {
    let rows = run(&with_series(gap(Some("bulk"), None)));
    let short = of(&rows, "short");
    let end = of(&rows, "bulk")[0].end_us;
    assert!(short.len() > 3, "{}", short.len());
    assert_eq!(short[0].start_us, 500_000);
    for pair in short.windows(2) {
        assert_eq!(pair[1].start_us, pair[0].end_us + 100_000);
        assert_eq!(pair[1].connection, pair[0].connection + 1);
    }
    assert!(short.iter().all(|row| row.completed && row.start_us <= end));
}

#[test]
fn a_series_of_three_has_three_connections() {
    assert_eq!(of(&run(&with_series(gap(None, Some(3)))), "short").len(), 3);
}

#[test]
fn copies_run_side_by_side() {
    let mut experiment = with_series(gap(None, Some(2)));
    experiment.flows[1].count = 5;
    let rows = run(&experiment);
    let short = of(&rows, "short");
    assert_eq!(short.len(), 10);
    assert_eq!(short.iter().filter(|row| row.start_us == 500_000).count(), 5);
}

#[test]
fn poisson_arrivals_keep_their_rate_regardless_of_unfinished_flows() {
    let mut experiment = support::experiment();
    experiment.duration_ns = Some(Span::from_secs(60));
    experiment.sample_interval_ns = Span::ZERO;
    experiment.flows[0].load = Load::Sizes { sizes_bytes: vec![Bytes(2_000), Bytes(20_000)] };
    experiment.flows[0].repeat = Repeat::Poisson { mean_gap_ns: Span::from_millis(50), until: None, count: None };
    let rows = run(&experiment);
    // 1200 are expected; four standard deviations are 140.
    assert!((1_060..1_340).contains(&rows.flows.len()), "{}", rows.flows.len());
    let large = rows.flows.iter().filter(|row| row.size_bytes == Some(20_000)).count();
    assert!((rows.flows.len() * 4 / 10..rows.flows.len() * 6 / 10).contains(&large), "{large}");
    let overlap = rows.flows.windows(2).any(|pair| pair[1].start_us < pair[0].end_us);
    assert!(overlap);
}

#[test]
fn requests_share_a_connection_with_think_time_between_them() {
    let mut experiment = support::experiment();
    experiment.flows[0].load =
        Load::Requests { size_bytes: Bytes(100_000), think_ns: Span::from_millis(50), count: Some(20) };
    let rows = run(&experiment);
    assert_eq!(rows.flows.len(), 20);
    for pair in rows.flows.windows(2) {
        assert_eq!(pair[1].start_us - pair[0].end_us, 50_000);
        assert_eq!((pair[1].connection, pair[1].transfer), (0, pair[0].transfer + 1));
    }
    // The first transfer includes the handshake and slow start; later ones start with a larger window.
    let fct = |index: usize| rows.flows[index].fct_us.expect("it completed");
    assert!(fct(19) + 40_000 < fct(0), "{} {}", fct(0), fct(19));
}

#[test]
fn a_stopped_flow_sends_nothing_more_and_its_data_in_flight_arrives() {
    let mut experiment = bulk(MBPS_20, MS_40, 1.0, &["cubic", "cubic"], 6);
    experiment.flows[0].stop_ns = Some(Time(2_000_000_000));
    let rows = run(&experiment);
    let (stopped, other) = (of(&rows, "cubic-0")[0], of(&rows, "cubic-1")[0]);
    assert!((2_000_000..2_300_000).contains(&stopped.end_us), "{}", stopped.end_us);
    assert!(!stopped.completed && stopped.acked_bytes > 1_000_000);
    assert_eq!(other.end_us, 6_000_000);
    assert!(other.acked_bytes > 2 * stopped.acked_bytes);
}

#[test]
fn start_jitter_moves_starts_within_its_bound_and_differs_between_seeds() {
    let mut experiment = support::experiment();
    experiment.start_jitter_ns = MS_40;
    let starts: Vec<u64> = (0..5)
        .map(|seed| {
            experiment.seed = seed;
            run(&experiment).flows[0].start_us
        })
        .collect();
    assert!(starts.iter().all(|start| *start < 40_000), "{starts:?}");
    assert!(starts.windows(2).any(|pair| pair[0] != pair[1]), "{starts:?}");
}

#[test]
fn extra_rtt_affects_only_the_rtt_of_its_flow() {
    let mut experiment = bulk(MBPS_20, MS_40, 0.5, &["cubic", "cubic"], 5);
    experiment.flows[1].extra_rtt_ns = Span::from_millis(30);
    let rows = run(&experiment);
    let min = |flow| of(&rows, flow)[0].rtt_min_us.expect("it has samples");
    assert!((40_000.0..42_000.0).contains(&min("cubic-0")), "{}", min("cubic-0"));
    assert!((70_000.0..72_000.0).contains(&min("cubic-1")), "{}", min("cubic-1"));
}

#[test]
fn udp_uses_its_rate_and_tcp_the_remaining_capacity() {
    let mut experiment = bulk(MBPS_20, MS_40, 1.0, &["cubic"], 20);
    let alone = share(&run(&experiment).flows[0], MBPS_20);
    experiment.background =
        vec![Background { rate_bps: Rate::from_mbps(12), start_ns: Time::ZERO, stop_ns: None, up: false }];
    let beside = share(&run(&experiment).flows[0], MBPS_20);
    assert!(alone > 0.9 && (0.3..0.4).contains(&beside), "{alone} {beside}");
}

#[test]
fn udp_at_the_path_rate_leaves_little_to_tcp() {
    // If its departures were synchronized with the bottleneck, UDP would take every free place in the queue, and TCP's
    // rate would be a hundredth of that measured here.
    let rate = Rate::from_mbps(10);
    let mut experiment = bulk(rate, MS_40, 0.6, &["cubic"], 30);
    experiment.background = vec![Background { rate_bps: rate, start_ns: Time::ZERO, stop_ns: None, up: false }];
    let tcp_share = share(&run(&experiment).flows[0], rate);
    assert!((0.01..0.2).contains(&tcp_share), "{tcp_share}");
}

#[test]
fn a_rate_step_is_followed() {
    let mut experiment = bulk(MBPS_20, MS_40, 1.0, &["cubic"], 20);
    let steps =
        [(0, 20), (10, 5)].map(|(s, mbps)| Step { at_ns: Time(s * 1_000_000_000), rate_bps: Rate::from_mbps(mbps) });
    experiment.forward.capacity = Capacity::Steps { steps: steps.to_vec() };
    let rows = run(&experiment);
    let acked = |t_us: u64| rows.samples.iter().rfind(|row| row.t_us <= t_us).expect("a sample").acked_bytes as f64;
    let first = (acked(10_000_000) - acked(3_000_000)) * 8.0 / 7e6;
    let second = (acked(20_000_000) - acked(13_000_000)) * 8.0 / 7e6;
    assert!((17.0..20.0).contains(&first) && (4.3..5.0).contains(&second), "{first} {second}");
}

#[test]
fn a_trace_yields_the_capacity_that_it_lists() {
    let mut experiment = bulk(MBPS_20, MS_40, 2.0, &["bbr"], 20);
    experiment.forward.capacity = Capacity::Trace { trace: "t".to_owned() };
    // Two packets per millisecond: 24 Mbit/s.
    let opportunities = BTreeMap::from([("t".to_owned(), (1..=100).flat_map(|ms| [ms, ms]).collect())]);
    let traces = Traces { opportunities, ..Traces::default() };
    let rows = support::run_with_traces(&experiment, &traces);
    let goodput = rows.flows[0].goodput_bps / 24e6;
    assert!((0.85..0.97).contains(&goodput), "{goodput}");
}

#[test]
fn the_receive_buffer_limits_the_rate_to_a_window_per_round_trip() {
    let mut experiment = bulk(Rate::from_mbps(100), Span::from_millis(100), 1.0, &["cubic"], 20);
    let mut limited = |kernel| {
        let receiver = experiment.hosts.get_mut("receiver").expect("there is one");
        (receiver.rcvbuf_max_bytes, receiver.kernel) = (Bytes(400_000), kernel);
        run(&experiment).flows[0].goodput_bps / 1e6
    };
    // Half of the buffer is window: 200 kB per 100 ms, 16 Mbit/s.
    let old = limited(Some(Kernel::Linux6_1));
    assert!((15.0..16.1).contains(&old), "{old}");
    // 153/256 of the buffer is window: 239 kB per 100 ms, 19.1 Mbit/s.
    let new = limited(Some(Kernel::Linux6_12));
    assert!((18.2..19.2).contains(&new), "{new}");
    // The newest generation is the default.
    assert_eq!(limited(None).to_bits(), limited(Some(Kernel::Linux6_18)).to_bits());
}

#[test]
fn the_send_buffer_limits_the_rate() {
    let mut experiment = bulk(Rate::from_mbps(100), Span::from_millis(100), 1.0, &["cubic"], 20);
    experiment.hosts.get_mut("sender").expect("there is one").sndbuf_max_bytes = Bytes(400_000);
    let limited = run(&experiment).flows[0].goodput_bps / 1e6;
    assert!((8.0..33.0).contains(&limited), "{limited}");
}

#[test]
fn samples_have_the_configured_interval_and_counters_never_decrease() {
    let rows = run(&bulk(MBPS_20, MS_40, 1.0, &["bbr"], 3));
    let times: Vec<u64> = rows.samples.iter().map(|row| row.t_us).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 100_000));
    assert!(rows.samples.windows(2).all(|pair| pair[0].acked_bytes <= pair[1].acked_bytes));
    let last = rows.queue.iter().rfind(|row| row.link == "forward").expect("it was sampled");
    let capacity = last.capacity_bytes.expect("it has a limit");
    assert!(last.sent_bytes <= capacity && last.sent_bytes > capacity / 2);
    assert!(rows.state.iter().any(|row| row.key == "pacing_gain"));
}

#[test]
fn a_value_of_one_algorithm_has_a_row_at_the_first_sample_and_where_it_changes() {
    let rows = run(&bulk(MBPS_20, MS_40, 1.0, &["bbr", "bbr", "cubic"], 5));
    let mut last = BTreeMap::new();
    for row in &rows.state {
        let before = last.insert((row.flow.clone(), row.copy, row.connection, row.key), (row.t_us, row.value));
        assert!(before.is_none_or(|(t_us, value)| t_us < row.t_us && value != row.value), "{row:?} after {before:?}");
    }
    assert_eq!(last.len(), 2 * 9 + 5, "keys of two BBR flows and a CUBIC flow");
    let first = |flow: &str| rows.samples.iter().find(|row| *row.flow == *flow).expect("it was sampled").t_us;
    let all = |row: &&StateRow| row.t_us == first(&row.flow);
    assert_eq!(rows.state.iter().filter(all).count(), last.len(), "each key has a row at the first sample");
    assert!(rows.state.len() > last.len(), "some values change");
}

#[test]
fn no_samples_are_taken_unless_enabled() {
    let mut experiment = support::experiment();
    experiment.sample_interval_ns = Span::ZERO;
    let rows = run(&experiment);
    assert!(rows.samples.is_empty() && rows.state.is_empty());
    assert_eq!(rows.queue.len(), 2, "the totals of both directions");
}

#[test]
fn cancelling_stops_a_long_experiment() {
    let experiment = bulk(MBPS_20, MS_40, 1.0, &["cubic"], 1_000_000);
    let result = thalweg_sim::run(&experiment, &Traces::default(), &mut thalweg_trace::Nothing, &|| true);
    assert_eq!(result, Err(Error::Cancelled));
}

#[test]
fn an_impossible_experiment_is_rejected_with_the_key_path() {
    let refused = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = support::experiment();
        change(&mut experiment);
        let result = thalweg_sim::run(&experiment, &Traces::default(), &mut thalweg_trace::Nothing, &|| false);
        match result {
            Err(Error::Invalid { place, .. }) => place,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|it| it.flows[0].cc = "cubik".to_owned()), "flows.bulk.cc");
    assert_eq!(refused(&|it| it.flows[0].host = "elsewhere".to_owned()), "flows.bulk.host");
    assert_eq!(refused(&|it| it.flows[0].load = Load::Unlimited), "duration_ns");
    assert_eq!(refused(&|it| it.flows[0].repeat = gap(Some("missing"), None)), "flows.bulk.repeat.until");
    assert_eq!(refused(&|it| it.flows[0].count = 1 << 31), "flows", "they would take terabytes");
    assert_eq!(refused(&|it| it.forward.loss = support::loss(1.0)), "forward.loss");
    let udp = Background { rate_bps: MBPS_20, start_ns: Time::ZERO, stop_ns: None, up: false };
    assert_eq!(refused(&|it| it.background = vec![udp.clone()]), "background");
    assert_eq!(
        refused(&|it| it.forward.capacity = Capacity::Trace { trace: "none".to_owned() }),
        "forward.capacity.trace"
    );
    assert_eq!(refused(&|it| it.forward.capacity = Capacity::Steps { steps: Vec::new() }), "forward.capacity.steps");
}

#[test]
fn the_probing_clock_of_bbr_counts_round_trips_or_time() {
    let probes = |rtt: Span, params: &[(&str, f64)]| {
        let mut experiment = bulk(MBPS_20, rtt, 2.0, &["bbr"], 24);
        experiment.sample_interval_ns = Span::from_millis(5);
        experiment.flows[0].cc_params = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let rows = run(&experiment);
        assert!(share(&rows.flows[0], MBPS_20) > 0.8, "{params:?}: {:?}", rows.flows[0]);
        let is_probe = |row: &&StateRow| row.key == "pacing_gain" && row.value == 1.25 && row.t_us > 3_000_000;
        let starts: Vec<u64> = rows.state.iter().filter(is_probe).map(|row| row.t_us).collect();
        starts.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect::<Vec<u64>>()
    };
    let by_time = [("probe_clock", 1.0), ("probe_interval_ms", 1_000.0), ("probe_rtt_interval_s", 60.0)];
    for rtt in [Span::from_millis(20), Span::from_millis(80)] {
        let intervals = probes(rtt, &by_time);
        assert!(intervals.len() >= 19 && intervals.iter().all(|ms| (995..=1_010).contains(ms)), "{rtt}: {intervals:?}");
    }
    let by_round_trips = probes(Span::from_millis(20), &by_time[2..]);
    // Eight phases, each slightly longer than 20 ms.
    let median = {
        let mut sorted = by_round_trips.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    };
    assert!((160..200).contains(&median), "{by_round_trips:?}");
    let jittered = probes(Span::from_millis(20), &[by_time[0], by_time[1], by_time[2], ("probe_jitter", 0.3)]);
    assert!(jittered.iter().all(|ms| (695..=1_310).contains(ms)), "{jittered:?}");
    assert!(jittered.iter().any(|ms| *ms < 900) && jittered.iter().any(|ms| *ms > 1_100), "{jittered:?}");
}
