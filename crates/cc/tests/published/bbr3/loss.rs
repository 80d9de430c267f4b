//! Tests of policers and of spurious losses.

use super::{
    DOWN, DRAFT, LINUX, PROBE_BW, REFILL, UP, pipe, state, usual_path, wait_for, wait_for_end, wait_for_phase,
};
use crate::pipe::{Pipe, Row};
use thalweg_units::{Packets, Rate, Span};

#[test]
fn a_17_handling_token_bucket_policers() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(usual_path(), variant);
        wait_for_phase(&mut pipe, super::CRUISE);
        pipe.set_policer(Rate::from_mbps(10), Packets(50));
        let from = pipe.now();
        let low = wait_for(&mut pipe, "3s", |row| row.value("bw_bps") < 13e6);
        assert!(low.value("inflight_shortterm_packets") > 0.0, "{low:?}");
        let start = from + Span::from_secs(10);
        pipe.run_until(start + Span::from_secs(20));
        let goodput = pipe.goodput(start).0 as f64;
        assert!((0.8..=1.01).contains(&(goodput / 10e6)), "{goodput}");
        let (first, last) = (pipe.row_at(start), pipe.rows.last().expect("rows"));
        let lost = (last.lost - first.lost).0 as f64 / (last.delivered - first.delivered).0 as f64;
        assert!(lost < 0.05, "{lost}");
    }
}

/// Runs a probe that loses too much. Returns the connection, and the rows at the start of the probe and at the response
/// to the losses.
fn failed_probe(variant: f64) -> (Pipe, Row, Row) {
    let mut pipe = pipe(usual_path(), variant);
    let before = wait_for_phase(&mut pipe, UP);
    let next = pipe.transmissions();
    // Every other packet, so that the losses are detected one by one.
    pipe.path().lose.extend((next..next + 40).step_by(2));
    let failed = wait_for_end(&mut pipe, "1s");
    assert_eq!(state(&failed), (PROBE_BW, Some(DOWN)));
    assert!(failed.value("inflight_longterm_packets") > 0.0, "{failed:?}");
    (pipe, before, failed)
}

/// Reports the losses as spurious, and asserts that the bounds and cwnd are restored, and that probing resumes in the
/// draft's variant only.
fn assert_restored(pipe: &mut Pipe, before: &Row, variant: f64) {
    let (cwnd, ssthresh) = (before.cwnd, before.ssthresh);
    pipe.undo(cwnd, ssthresh);
    assert!(pipe.window.cwnd >= cwnd, "{} after {cwnd}", pipe.window.cwnd);
    let rows = pipe.rows.len();
    pipe.step();
    while pipe.rows.len() == rows {
        pipe.step();
    }
    let after = pipe.rows.last().expect("rows").clone();
    assert_eq!(after.value("inflight_longterm_packets"), before.value("inflight_longterm_packets"));
    assert_eq!(after.value("inflight_shortterm_packets"), before.value("inflight_shortterm_packets"));
    if variant == DRAFT {
        assert_eq!(state(&after), (PROBE_BW, Some(REFILL)));
        assert_eq!(state(&wait_for_end(pipe, "1s")), (PROBE_BW, Some(UP)));
    } else {
        assert_eq!(state(&after).0, PROBE_BW);
        assert_ne!(state(&after).1, Some(UP), "Linux does not go back");
    }
}

#[test]
fn a_18_handling_spurious_fast_recovery() {
    for variant in [LINUX, DRAFT] {
        let (mut pipe, before, _) = failed_probe(variant);
        assert_restored(&mut pipe, &before, variant);
    }
}

#[test]
fn a_19_handling_spurious_rto_recovery() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(usual_path(), variant);
        let before = wait_for_phase(&mut pipe, UP);
        let next = pipe.transmissions();
        // Every other packet, so that the losses are detected one by one.
        pipe.path().lose.extend((next..next + 40).step_by(2));
        wait_for(&mut pipe, "1s", |row| row.at > before.at + Span::from_millis(20));
        pipe.time_out();
        assert_eq!(pipe.window.cwnd, Packets(1));
        assert_restored(&mut pipe, &before, variant);
    }
}
