//! Compares experiments on a kernel with the simulator.

use super::plans::{experiment, flow, sizes};
use super::rig::{Outcome, Rig};
use std::collections::BTreeMap;
use thalweg_lab::protocol::Command;
use thalweg_plan::plan::{Experiment, Flow, Load, Repeat, Traces};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Span, Time};

/// Maximum of the median difference between start times and the simulator's: far below the effect of different random
/// numbers, and far above that of a busy machine.
const MEDIAN_LATENESS_US: u64 = 25_000;

/// Size and completion, by flow, copy, connection and transfer.
type Transfers = BTreeMap<(String, u64, u64, u64), (Option<u64>, bool)>;

fn run_and_compare(plan: &Experiment) -> Option<Outcome> {
    let rig = Rig::new()?;
    let outcome = rig.run_in_time(plan);
    let mut simulated = Memory::default();
    thalweg_sim::run(plan, &Traces::default(), &mut simulated, &|| false).expect("the simulator takes it");

    let real_transfers: Transfers = outcome
        .flows
        .iter()
        .map(|row| {
            let name = plan.flows[row.of.flow].name.clone();
            ((name, row.of.copy, row.of.connection, row.transfer), (row.size_bytes, row.completed))
        })
        .collect();
    let simulated_transfers: Transfers = simulated
        .flows
        .iter()
        .map(|row| ((row.flow.to_string(), row.copy, row.connection, row.transfer), (row.size_bytes, row.completed)))
        .collect();
    assert_eq!(real_transfers, simulated_transfers);

    let mut starts: Vec<(u64, u64)> = Vec::new();
    for row in &outcome.flows {
        let same = |other: &&thalweg_trace::FlowRow| {
            *other.flow == plan.flows[row.of.flow].name
                && (other.copy, other.connection, other.transfer) == (row.of.copy, row.of.connection, row.transfer)
        };
        let other = simulated.flows.iter().find(same).expect("both have it");
        starts.push((row.start_us, other.start_us));
    }
    let mut apart: Vec<u64> = starts.iter().map(|(ours, theirs)| ours.abs_diff(*theirs)).collect();
    apart.sort_unstable();
    assert!(apart[apart.len() / 2] < MEDIAN_LATENESS_US, "here, there: {starts:?}");
    Some(outcome)
}

#[test]
fn poisson_arrivals_occur_at_the_same_times_as_in_the_simulator() {
    let repeat = Repeat::Poisson { mean_gap_ns: Span::from_millis(20), until: None, count: Some(60) };
    let plan =
        experiment(vec![Flow { repeat, count: 2, ..flow("arrivals", sizes(&[1_000, 20_000, 300_000, 1_000_000])) }]);
    let Some(outcome) = run_and_compare(&plan) else { return };
    assert_eq!(outcome.flows.len(), 120);
}

#[test]
fn connections_follow_one_another_after_gaps() {
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(30), until: None, count: Some(15) };
    let mut plan =
        experiment(vec![Flow { repeat, start_ns: Time(50_000_000), ..flow("series", sizes(&[10_000, 20_000])) }]);
    plan.start_jitter_ns = Span::from_millis(40);
    let Some(outcome) = run_and_compare(&plan) else { return };
    for pair in outcome.flows.windows(2) {
        assert!(pair[1].start_us >= pair[0].end_us + 30_000, "{pair:?}");
    }
}

#[test]
fn a_series_continues_until_another_flow_ends() {
    // Ten requests with nine think times end after 900 ms. In this time, five connections open, one every 200 ms.
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: Some(10) };
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(200), until: Some("requests".to_owned()), count: None };
    let plan = experiment(vec![Flow { repeat, ..flow("series", sizes(&[5_000])) }, flow("requests", requests)]);
    let Some(outcome) = run_and_compare(&plan) else { return };
    assert_eq!(outcome.flows.iter().filter(|row| row.of.flow == 0).count(), 5);
}

#[test]
fn a_flow_stops_at_its_stop_time() {
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: None };
    let stop = Some(Time(450_000_000));
    let plan = experiment(vec![
        Flow { stop_ns: stop, ..flow("requests", requests) },
        Flow { stop_ns: stop, count: 2, ..flow("bulk", Load::Unlimited) },
        Flow { stop_ns: stop, start_ns: Time(400_000_000), ..flow("too large", sizes(&[200_000_000_000])) },
        Flow {
            stop_ns: stop,
            repeat: Repeat::Gap { gap_ns: Span::from_millis(100), until: None, count: None },
            ..flow("series", sizes(&[1_000]))
        },
    ]);
    // Not simulated: unlimited flows on an unlimited path never finish there.
    let Some(rig) = Rig::new() else { return };
    let outcome = rig.run_in_time(&plan);
    let count = |flow| outcome.flows.iter().filter(|row| row.of.flow == flow).count();
    assert_eq!([count(0), count(1), count(2), count(3)], [5, 2, 1, 5]);
    for row in &outcome.flows {
        let is_whole = row.of.flow == 0 || row.of.flow == 3;
        assert_eq!(row.completed, is_whole, "{row:?}");
        assert!(row.acked_bytes > 0, "{row:?}");
        assert!(is_whole || row.end_us >= 450_000, "{row:?}");
    }
}

#[test]
fn a_flow_stopped_early_matches_the_simulator() {
    let requests = Load::Requests { size_bytes: Bytes(10_000), think_ns: Span::from_millis(100), count: None };
    let stop = Some(Time(450_000_000));
    let plan = experiment(vec![
        Flow { stop_ns: stop, ..flow("requests", requests) },
        Flow {
            stop_ns: stop,
            repeat: Repeat::Gap { gap_ns: Span::from_millis(100), until: None, count: None },
            ..flow("series", sizes(&[1_000]))
        },
    ]);
    run_and_compare(&plan);
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
