//! Faults and unsupported requests are reported.

use super::plans::{experiment, flow, sizes};
use super::rig::Rig;
use thalweg_plan::plan::{Flow, Load};
use thalweg_units::Span;

#[test]
fn an_unknown_algorithm_is_rejected_with_the_available_ones() {
    let Some(rig) = Rig::new() else { return };
    let error = rig.refusal(&experiment(vec![Flow { cc: "nosuchcc".to_owned(), ..flow("f", sizes(&[1])) }]));
    assert_eq!(error.code, "unknown-cc");
    assert!(error.message.contains("`nosuchcc`") && error.message.contains("reno"), "{error}");
}

#[test]
fn more_connections_than_open_files_are_rejected_with_the_command_to_raise_the_limit() {
    let Some(rig) = Rig::new() else { return };
    let error = rig.refusal(&experiment(vec![Flow { count: u32::MAX, ..flow("f", sizes(&[1])) }]));
    assert_eq!(error.code, "too-many-connections");
    assert!(error.hint.contains("ulimit -n"), "{error}");
}

#[test]
fn a_host_exits_when_its_stdin_closes() {
    let Some(rig) = Rig::new() else { return };
    let plan = experiment(vec![flow("f", Load::Unlimited)]);
    let mut receiver = rig.receiver(&plan);
    let mut sender = rig.sender(&plan, &[0]);
    receiver.start();
    sender.start();
    assert!(sender.ends_with_its_input());
    assert!(receiver.ends_with_its_input());
}

#[test]
fn refused_connections_make_the_run_untrustworthy() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(vec![flow("f", sizes(&[1_000]))]);
    plan.duration_ns = Some(Span::from_millis(300));
    let mut sender = rig.sender(&plan, &[0]);
    sender.start();
    sender.wait_for("f");
    let outcome = sender.stop();
    assert_eq!(outcome.stopped.measured["connections_failed"], 1.0);
    assert!(outcome.stopped.untrustworthy[0].contains("could not be opened"), "{:?}", outcome.stopped);
    assert!(!outcome.flows[0].completed && outcome.flows[0].acked_bytes == 0);
}

#[test]
fn flows_on_a_dead_path_stop_with_the_experiment() {
    let Some(rig) = Rig::new() else { return };
    let mut plan = experiment(vec![Flow { count: 3, ..flow("f", sizes(&[1_000])) }]);
    plan.duration_ns = Some(Span::from_millis(300));
    rig.cut();
    let mut sender = rig.sender(&plan, &[0]);
    sender.start();
    sender.wait_until_over(&plan);
    let outcome = sender.stop();
    assert_eq!(outcome.flows.len(), 3);
    for row in &outcome.flows {
        assert!(!row.completed && row.end_us == 300_000 && row.acked_bytes == 0, "{row:?}");
        assert_eq!((row.segments, row.retransmits), (0, Some(0)), "what was sent were SYNs: {row:?}");
    }
    let doubts = outcome.stopped.untrustworthy;
    assert!(
        !doubts.iter().any(|doubt| doubt.contains("could not be opened")),
        "a path may lose everything: {doubts:?}"
    );
}

#[test]
fn no_connection_outlives_the_experiment() {
    let Some(rig) = Rig::new() else { return };
    // At this rate, connections that are not reset would send the data in their sockets for many seconds.
    if rig.limit_rate("1mbit").is_none() {
        return;
    }
    let mut plan = experiment(vec![Flow { count: 10, ..flow("f", Load::Unlimited) }]);
    plan.duration_ns = Some(Span::from_millis(200));
    let (outcome, _) = rig.run(&plan);
    assert_eq!(outcome.flows.len(), 10);
    assert_eq!(rig.connections_left(), "");
}
