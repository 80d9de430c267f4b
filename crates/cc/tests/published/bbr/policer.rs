//! Tests of the policer detection, including false positives.

use super::{PROBE_BW, phases, run, usual_path};
use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_units::{Packets, Rate, Span, Time};

fn policed_path() -> Path {
    let mut path = usual_path();
    path.policer = Some((Rate::from_mbps(5), Packets(200)));
    path
}

#[test]
fn a_policer_is_detected_and_its_rate_used_for_48_rounds() {
    let pipe = run(policed_path(), &[], "12s");
    let phases_of_rate = phases(&pipe, "lt_bw_in_use");
    let (_, start, end) = phases_of_rate.iter().find(|(in_use, ..)| *in_use == 1.0).expect("the policer is found");
    let rate = start.value("bw_bps") / 5e6;
    assert!((0.9..1.15).contains(&rate), "{rate} of the policer's rate");
    assert_eq!(end.value("round") - start.value("round"), 48.0);
    let probes = |row: &&Row| row.at > start.at && row.at < end.at && row.value("mode") == PROBE_BW;
    assert!(pipe.rows.iter().filter(probes).all(|row| row.value("pacing_gain") == 1.0));
}

#[test]
fn sending_at_the_rate_of_a_policer_avoids_losses() {
    let loss = |from: &Row, to: &Row| (to.lost - from.lost).0 as f64 / (to.delivered - from.delivered).0 as f64;
    let with = run(policed_path(), &[], "4s");
    let phases_of_rate = phases(&with, "lt_bw_in_use");
    let (_, start, end) = phases_of_rate.iter().find(|(in_use, ..)| *in_use == 1.0).expect("the policer is found");
    // Packets sent earlier can still be lost during the first round trips.
    let held_loss = loss(with.row_at(Time(start.at.0 + 200_000_000)), end);
    assert!(held_loss < 0.005, "{held_loss}");

    let without = run(policed_path(), &[("policer_detection", 0.0)], "4s");
    assert!(without.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));
    let probing_loss = loss(without.row_at(at("1s")), without.rows.last().expect("rows"));
    assert!(probing_loss > 0.04, "{probing_loss}");
}

#[test]
fn losses_at_a_changing_rate_are_not_attributed_to_a_policer() {
    let mut path = usual_path();
    path.policer = Some((Rate::from_mbps(32), Packets(20)));
    let mut pipe = Pipe::new(path, "bbr", &[]);
    for step in 1..=5 {
        // A step is shorter than two intervals of four rounds each.
        pipe.run_until(Time(step * 300_000_000));
        pipe.set_policer(Rate::from_mbps(32 >> step), Packets(20));
    }
    let last = pipe.rows.last().expect("rows");
    assert!(last.lost.0 as f64 > 0.195 * last.delivered.0 as f64, "{last:?}");
    assert!(pipe.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));
}

#[test]
fn losses_of_an_application_limited_sender_are_not_attributed_to_a_policer() {
    let mut path = policed_path();
    path.policer = Some((Rate::from_mbps(5), Packets(10)));
    // Three quarters of the policer's rate, in bursts of which the policer drops a large part. Each burst is finished
    // before the next.
    path.bursts = Some((Packets(80), Span::from_millis(250)));
    let pipe = run(path.clone(), &[], "8s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.lost.0 as f64 > 0.195 * last.delivered.0 as f64, "{last:?}");
    assert!(pipe.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));

    path.bursts = None;
    assert!(run(path, &[], "8s").rows.iter().any(|row| row.value("lt_bw_in_use") == 1.0), "it is found otherwise");
}
