//! Compares experiments on a kernel with the simulator. A busy machine delays the generator, so times are compared with
//! the lateness that the generator has measured in the same run.

use super::plans::{experiment, flow, sizes};
use super::rig::{Outcome, Rig};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use thalweg_lab::protocol::{Command, FlowReport};
use thalweg_plan::plan::{Experiment, Flow, Load, Repeat, Traces};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Span, Time};

/// Maximum time in microseconds between the end of a transfer and its handling by the generator.
const HANDLING_US: u64 = 90_000;

/// Flow, copy, connection and transfer.
type Key = (String, u64, u64, u64);

/// Start time, size and completion of transfers.
type Transfers = BTreeMap<Key, (u64, Option<u64>, bool)>;

fn run(plan: &Experiment) -> Option<(Outcome, Transfers)> {
    let (outcome, _) = Rig::new()?.run(plan);
    let transfer = |row: &FlowReport| {
        let key = (plan.flows[row.of.flow].name.clone(), row.of.copy, row.of.connection, row.transfer);
        (key, (row.start_us, row.size_bytes, row.completed))
    };
    let transfers = outcome.flows.iter().map(transfer).collect();
    Some((outcome, transfers))
}

fn simulate(plan: &Experiment) -> Transfers {
    let mut simulated = Memory::default();
    thalweg_sim::run(plan, &Traces::default(), &mut simulated, &|| false).expect("the simulator takes it");
    let transfer = |row: &thalweg_trace::FlowRow| {
        let key = (row.flow.to_string(), row.copy, row.connection, row.transfer);
        (key, (row.start_us, row.size_bytes, row.completed))
    };
    simulated.flows.iter().map(transfer).collect()
}

fn without_times(transfers: &Transfers) -> BTreeMap<Key, (Option<u64>, bool)> {
    transfers.iter().map(|(key, (_, size, completed))| (key.clone(), (*size, *completed))).collect()
}

/// Returns the largest lateness of a start, in microseconds, rounded up.
fn lateness_us(outcome: &Outcome) -> u64 {
    outcome.stopped.measured["start_lateness_max_us"] as u64 + 2
}

/// Returns the rows of a flow in the order of their starts.
fn rows_of(outcome: &Outcome, flow: usize) -> Vec<&FlowReport> {
    let mut rows: Vec<&FlowReport> = outcome.flows.iter().filter(|row| row.of.flow == flow).collect();
    rows.sort_by_key(|row| row.start_us);
    rows
}

/// Asserts that each transfer starts `gap_us` after the previous one.
fn assert_gaps(outcome: &Outcome, flow: usize, gap_us: u64) {
    let (rows, late_us) = (rows_of(outcome, flow), lateness_us(outcome));
    for pair in rows.windows(2) {
        let gap = (pair[0].end_us + gap_us)..=(pair[0].end_us + gap_us + HANDLING_US + late_us);
        assert!(gap.contains(&pair[1].start_us), "{gap:?} {pair:?}");
    }
}

/// Asserts that a flow's transfers, `gap_us` apart, continue until some time in this interval.
fn assert_continues(outcome: &Outcome, flow: usize, gap_us: u64, until_us: RangeInclusive<u64>) {
    assert_gaps(outcome, flow, gap_us);
    let late_us = lateness_us(outcome);
    let last = *rows_of(outcome, flow).last().expect("the first transfer");
    assert!(last.start_us <= until_us.end() + late_us, "{until_us:?} {last:?}");
    assert!(last.end_us + gap_us + HANDLING_US + late_us >= *until_us.start(), "{until_us:?} {last:?}");
}

#[test]
fn poisson_arrivals_occur_at_the_same_times_as_in_the_simulator() {
    let repeat = Repeat::Poisson { mean_gap_ns: Span::from_millis(20), until: None, count: Some(60) };
    let plan =
        experiment(vec![Flow { repeat, count: 2, ..flow("arrivals", sizes(&[1_000, 20_000, 300_000, 1_000_000])) }]);
    let Some((outcome, transfers)) = run(&plan) else { return };
    let simulated = simulate(&plan);
    assert_eq!(without_times(&transfers), without_times(&simulated));
    assert_eq!(transfers.len(), 120);
    for (key, (due_us, ..)) in &simulated {
        let at_most = due_us + lateness_us(&outcome);
        assert!((*due_us..=at_most).contains(&transfers[key].0), "{key:?}: {due_us} {} {at_most}", transfers[key].0);
    }
}

#[test]
fn connections_follow_one_another_after_gaps() {
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(30), until: None, count: Some(15) };
    let mut plan =
        experiment(vec![Flow { repeat, start_ns: Time(50_000_000), ..flow("series", sizes(&[10_000, 20_000])) }]);
    plan.start_jitter_ns = Span::from_millis(40);
    let Some((outcome, transfers)) = run(&plan) else { return };
    let simulated = simulate(&plan);
    assert_eq!(without_times(&transfers), without_times(&simulated));
    let first = ("series".to_owned(), 0, 0, 0);
    let due_us = simulated[&first].0;
    assert!((50_000..90_000).contains(&due_us), "{due_us}");
    assert!((due_us..=due_us + lateness_us(&outcome)).contains(&transfers[&first].0));
    assert_gaps(&outcome, 0, 30_000);
}

#[test]
fn a_series_continues_until_another_flow_ends() {
    // Ten requests with nine think times take at least 900 ms. In this time, connections open every 200 ms.
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: Some(10) };
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(200), until: Some("requests".to_owned()), count: None };
    let plan = experiment(vec![Flow { repeat, ..flow("series", sizes(&[5_000])) }, flow("requests", requests)]);
    let simulated = simulate(&plan);
    assert_eq!(simulated.keys().filter(|(flow, ..)| flow == "series").count(), 5);
    let Some((outcome, _)) = run(&plan) else { return };
    let requests = rows_of(&outcome, 1);
    assert_eq!(requests.len(), 10);
    let end_us = requests[9].end_us;
    assert_continues(&outcome, 0, 200_000, end_us..=end_us + HANDLING_US);
}

#[test]
fn a_flow_stops_at_its_stop_time() {
    const STOP_US: u64 = 450_000;
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: None };
    let stop = Some(Time(STOP_US * 1_000));
    let plan = experiment(vec![
        Flow { stop_ns: stop, ..flow("requests", requests) },
        Flow { stop_ns: stop, count: 2, ..flow("bulk", Load::Unlimited) },
        Flow { stop_ns: stop, start_ns: Time(100_000_000), ..flow("too large", sizes(&[200_000_000_000])) },
        Flow {
            stop_ns: stop,
            repeat: Repeat::Gap { gap_ns: Span::from_millis(100), until: None, count: None },
            ..flow("series", sizes(&[1_000]))
        },
    ]);
    let Some((outcome, _)) = run(&plan) else { return };
    for flow in [0, 3] {
        assert_continues(&outcome, flow, 100_000, STOP_US..=STOP_US);
    }
    assert_eq!([1, 2].map(|flow| rows_of(&outcome, flow).len()), [2, 1]);
    for row in &outcome.flows {
        assert!(row.completed || row.end_us >= STOP_US, "{row:?}");
        let is_sized = matches!(row.of.flow, 0 | 3);
        assert!(row.completed == is_sized || row.start_us + HANDLING_US >= STOP_US, "{row:?}");
        assert!(row.acked_bytes > 0 || (is_sized && !row.completed), "{row:?}");
    }
}

#[test]
fn a_flow_stopped_early_matches_the_simulator() {
    const STOP_US: u64 = 450_000;
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: None };
    let stop = Some(Time(STOP_US * 1_000));
    let plan = experiment(vec![
        Flow { stop_ns: stop, ..flow("requests", requests) },
        Flow {
            stop_ns: stop,
            repeat: Repeat::Gap { gap_ns: Span::from_millis(100), until: None, count: None },
            ..flow("series", sizes(&[1_000]))
        },
    ]);
    let Some((outcome, transfers)) = run(&plan) else { return };
    let simulated = without_times(&simulate(&plan));
    assert_eq!(simulated.len(), 10);
    for (key, transfer) in without_times(&transfers) {
        // The last ones may be stopped, or may not start, if the machine is busy.
        assert!(simulated[&key] == transfer || !transfer.1, "{key:?}: {transfer:?}");
    }
    for flow in [0, 1] {
        assert_continues(&outcome, flow, 100_000, STOP_US..=STOP_US);
    }
}

#[test]
fn a_flow_of_another_host_that_ends_stops_the_flows_waiting_for_it() {
    let Some(rig) = Rig::new() else { return };
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(1), until: Some("elsewhere".to_owned()), count: None };
    let plan = experiment(vec![Flow { repeat, ..flow("series", sizes(&[1_000])) }, flow("elsewhere", sizes(&[1_000]))]);
    let mut receiver = rig.receiver(&plan);
    let mut sender = rig.sender(&plan, &[0]);
    receiver.start();
    sender.start();
    sender.send_command(&Command::Over { flow: "another".to_owned() });
    sender.send_command(&Command::Over { flow: "elsewhere".to_owned() });
    sender.wait_for("series");
    let outcome = sender.stop();
    assert!(outcome.flows.iter().all(|row| row.of.flow == 0));
}
