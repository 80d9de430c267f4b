//! Flows that iperf3 makes.

use crate::plans::{experiment, flow, sizes};
use crate::rig::{Rig, skip};
use std::process::Command;
use thalweg_plan::plan::{Experiment, Flow, Generator, Load, Repeat};
use thalweg_units::{Span, Time};

fn on_iperf3(flows: Vec<Flow>) -> Experiment {
    let mut plan = experiment(flows);
    plan.engine.traffic = Generator::Iperf3;
    plan
}

fn rig() -> Option<Rig> {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return skip("iperf3 is not installed (`apt install iperf3`)");
    }
    Rig::new()
}

#[test]
fn iperf3_makes_the_same_bulk_flows() {
    let Some(rig) = rig() else { return };
    let mut plan = on_iperf3(vec![
        Flow { cc: "cubic".to_owned(), ..flow("sized", sizes(&[20_000_001])) },
        Flow {
            cc: "bbr".to_owned(),
            count: 2,
            start_ns: Time(100_000_000),
            stop_ns: Some(Time(900_000_000)),
            ..flow("bulk", Load::Unlimited)
        },
    ]);
    plan.duration_ns = Some(Span::from_secs(5));
    let (outcome, _) = rig.run(&plan);
    assert_eq!(outcome.stopped.untrustworthy, Vec::<String>::new());
    let [sized, bulk @ ..] = &outcome.flows[..] else { panic!("no rows") };
    assert!(sized.completed && sized.acked_bytes == 20_000_001, "{sized:?}");
    assert_eq!(bulk.len(), 2);
    for row in bulk {
        assert!(!row.completed && row.acked_bytes > 0 && row.segments > 0, "{row:?}");
        assert!(row.start_us >= 100_000 && row.end_us >= 900_000, "{row:?}");
        assert!(row.rtt_mean_us.is_some() && row.rtt_p50_us.is_some(), "{row:?}");
    }
    // The control connection is not a flow; both flows have BBR.
    let told = |copy| outcome.states.iter().any(|row| row.of.flow == 1 && row.of.copy == copy && row.key == "bw_bps");
    assert!(told(0) && told(1));
    assert!(outcome.samples.iter().all(|row| row.of.flow < 2 && row.of.connection == 0));
}

#[test]
fn flows_that_have_no_end_are_ended_with_the_experiment() {
    let Some(rig) = rig() else { return };
    let mut plan = on_iperf3(vec![flow("bulk", Load::Unlimited)]);
    plan.duration_ns = Some(Span::from_millis(500));
    let (outcome, _) = rig.run(&plan);
    let row = &outcome.flows[0];
    assert!(!row.completed && row.acked_bytes > 0 && row.end_us >= 500_000, "{row:?}");
}

#[test]
fn what_iperf3_cannot_do_is_refused_with_the_key() {
    let Some(rig) = rig() else { return };
    let repeat = Repeat::Gap { gap_ns: Span::from_millis(1), until: None, count: Some(2) };
    let requests = Load::Requests { size_bytes: thalweg_units::Bytes(1), think_ns: Span::ZERO, count: Some(2) };
    for (flow, key) in [
        (Flow { repeat, ..flow("f", sizes(&[1])) }, "flow.f.repeat"),
        (flow("f", requests), "flow.f.requests"),
        (flow("f", sizes(&[1, 2])), "flow.f.repeat.sizes"),
        (Flow { count: 2, ..flow("f", sizes(&[1])) }, "flow.f.count"),
    ] {
        let error = rig.refusal(&on_iperf3(vec![flow]));
        assert_eq!(error.code, "not-on-iperf3");
        assert!(error.message.starts_with(key) && error.hint.contains("builtin"), "{error}");
    }
}
