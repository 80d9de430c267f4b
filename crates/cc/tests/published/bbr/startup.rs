//! Tests that Startup doubles the rate, that Drain empties the queue, and that both end on time.

use super::{DRAIN, PROBE_BW, STARTUP, bdp_of, max_headroom, phase, phases, run, usual_path};
use crate::pipe::{Pipe, at};
use std::collections::BTreeMap;
use thalweg_units::{Packets, Span};

#[test]
fn startup_doubles_the_rate_each_round_and_ends_three_rounds_after_a_plateau() {
    let pipe = run(usual_path(), &[], "3s");
    let (_, end) = phase(&pipe, STARTUP);
    let starts = phases(&pipe, "round").into_iter().map(|(.., row)| (row.value("round") as u64, row.value("bw_bps")));
    let bw: BTreeMap<u64, f64> = starts.take_while(|(_, bw)| *bw < 0.99 * 50e6).collect();
    for (round, bw_bps) in bw.range(3..) {
        assert!(*bw_bps > 1.7 * bw[&(round - 1)], "round {round}: {bw:?}");
    }
    // In the next round the bandwidth grows by at most a quarter, so that round is the first without enough growth.
    let last_growth = *bw.keys().last().expect("it grew");
    assert!((5..=7).contains(&last_growth), "the pipe holds 17 initial windows: {bw:?}");
    assert_eq!(end.value("round") as u64, last_growth + 3, "{bw:?}");
    assert_eq!(end.value("mode"), DRAIN);
}

#[test]
fn an_application_limited_sender_does_not_exit_startup() {
    let mut path = usual_path();
    path.bursts = Some((Packets(4), Span::from_millis(10)));
    let pipe = run(path, &[], "5s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.value("round") > 50.0);
    assert_eq!((last.value("mode"), last.value("full_bw_reached")), (STARTUP, 0.0));
}

#[test]
fn startup_pacing_and_cwnd_gains_are_two_over_ln_two() {
    let pipe = run(usual_path(), &[], "100ms");
    let row = pipe.rows.last().expect("rows");
    assert!((row.value("pacing_gain") - 2.885).abs() < 0.004, "{row:?}");
    assert_eq!(row.value("cwnd_gain"), row.value("pacing_gain"));
}

#[test]
fn drain_paces_at_the_inverse_gain_and_ends_when_one_bdp_is_in_flight() {
    let pipe = run(usual_path(), &[], "3s");
    let (start, end) = phase(&pipe, DRAIN);
    assert!((start.value("pacing_gain") * 2.885 - 1.0).abs() < 0.01, "{start:?}");
    let ssthresh = start.ssthresh.0 as f64 - bdp_of(start);
    // Three bursts at the rate of Startup, each of a millisecond.
    assert!((30.0..=42.0).contains(&ssthresh), "ssthresh says where Startup ended: {start:?}");
    let target = bdp_of(end);
    assert!(start.inflight.0 as f64 > 1.5 * target, "Startup has queued: {start:?}");
    assert!((end.inflight.0 as f64) <= target + max_headroom(end), "{end:?}");
    assert!((end.inflight.0 as f64) > 0.9 * target, "and not much later: {end:?}");
    assert_eq!(end.value("mode"), PROBE_BW);
}

#[test]
fn packets_delivered_before_the_next_departure_are_not_counted_as_in_flight() {
    let mut path = usual_path();
    path.lead = Span::from_millis(10);
    let pipe = run(path, &[], "3s");
    let (_, end) = phase(&pipe, DRAIN);
    // 10 ms at 50 Mbit/s are 43 packets.
    let above = end.inflight.0 as f64 - bdp_of(end);
    assert!((43.0..=43.0 + max_headroom(end)).contains(&above), "{above} above the BDP: {end:?}");
}

#[test]
fn an_undo_keeps_cwnd_and_restarts_the_full_bandwidth_check() {
    let untouched = phase(&run(usual_path(), &[], "2s"), STARTUP).1.value("round");
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    while pipe.rows.last().is_none_or(|row| row.value("round") < untouched - 1.0) {
        pipe.step();
    }
    let cwnd = pipe.window.cwnd;
    pipe.undo(Packets(10_000), Packets::MAX);
    assert_eq!(pipe.window.cwnd, cwnd);
    pipe.run_until(at("2s"));
    // The next round counts as growth from zero, and three rounds without growth follow.
    assert_eq!(phase(&pipe, STARTUP).1.value("round"), untouched + 3.0);
}
