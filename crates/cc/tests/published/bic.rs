//! Tests of BIC on an ideal path, against Xu, Harfoush and Rhee, "Binary Increase Congestion Control" (2004), with
//! Linux's constants.
//!
//! Growth is multiplied by the average number of segments per ACK ([`PER_ACK`]).

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Time};

/// The average number of segments per ACK after a round trip: with one ACK per packet, it starts at 2, and integer
/// rounding keeps it at 31/16.
const PER_ACK: f64 = 31.0 / 16.0;

/// Returns a path without a bottleneck.
fn open_path(lose: &[u64]) -> Path {
    let mut path = Path::new("100Gbps", "100ms", 1_000_000);
    path.lose.extend(lose);
    path
}

/// Returns cwnd in the first row after the first recovery for which `is_wanted` holds, and its growth in the round trip
/// that follows.
fn growth_from(pipe: &Pipe, is_wanted: impl Fn(&Row) -> bool) -> (u64, u64) {
    let loss = pipe.reductions()[0].1.at;
    let wanted = |row: &&Row| row.at > loss && row.state == CaState::Open && is_wanted(row);
    let row = pipe.rows.iter().find(wanted).expect("cwnd gets there");
    let later = pipe.row_at(Time(row.at.0 + 100_000_000));
    (row.cwnd.0, later.cwnd.0 - row.cwnd.0)
}

/// Asserts that `value` differs from `expected` by at most this share of it.
fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value} and not {expected}");
}

#[test]
fn a_loss_multiplies_cwnd_by_four_fifths() {
    let mut pipe = Pipe::new(open_path(&[400]), "bic", &[]);
    pipe.run_until(at("2s"));
    let (before, after) = pipe.reductions()[0];
    assert_eq!(after.ssthresh.0, before.cwnd.0 * 819 / 1024);
    assert_eq!(after.value("w_max_packets"), before.cwnd.0 as f64);
}

#[test]
fn a_small_window_behaves_like_reno() {
    let mut pipe = Pipe::new(open_path(&[0]), "bic", &[]);
    pipe.run_until(at("1500ms"));
    let (before, after) = pipe.reductions()[0];
    assert!(before.cwnd <= Packets(14), "{}", before.cwnd);
    assert_eq!(after.ssthresh.0, before.cwnd.0 / 2);
    assert_eq!(growth_from(&pipe, |_| true).1, 1);

    let mut pipe = Pipe::new(open_path(&[0]), "bic", &[("low_window", 0.0)]);
    pipe.run_until(at("1500ms"));
    let (before, after) = pipe.reductions()[0];
    assert_eq!(after.ssthresh.0, before.cwnd.0 * 819 / 1024);
}

#[test]
fn far_below_w_max_cwnd_grows_by_the_largest_increment() {
    for increment in [16.0, 8.0] {
        let mut pipe = Pipe::new(open_path(&[1_000]), "bic", &[("max_increment", increment)]);
        pipe.run_until(at("4s"));
        let w_max = pipe.reductions()[0].0.cwnd.0;
        let (cwnd, gained) = growth_from(&pipe, |_| true);
        assert!(w_max - cwnd > 128, "far below");
        assert_close(gained as f64, increment * PER_ACK, 0.1);
    }
}

#[test]
fn near_w_max_a_round_trip_covers_a_quarter_of_the_distance() {
    let mut pipe = Pipe::new(open_path(&[1_000]), "bic", &[]);
    pipe.run_until(at("5s"));
    let w_max = pipe.reductions()[0].0.cwnd.0;
    for distance in [40, 24] {
        let (_, gained) = growth_from(&pipe, |row| row.cwnd.0 + distance >= w_max);
        // The distance to W_max shrinks continuously during the round trip.
        let expected = distance as f64 * (1.0 - (-PER_ACK / 4.0).exp());
        assert_close(gained as f64, expected, 0.15);
    }
}

#[test]
fn beyond_w_max_four_segments_take_smooth_part_round_trips() {
    for smooth_part in [20.0, 40.0] {
        let mut pipe = Pipe::new(open_path(&[1_000]), "bic", &[("smooth_part", smooth_part)]);
        pipe.run_until(at("8s"));
        let w_max = pipe.reductions()[0].0.cwnd.0;
        let reached = |cwnd: u64| {
            let loss = pipe.reductions()[0].1.at;
            let row = pipe.rows.iter().find(|row| row.at > loss && row.state == CaState::Open && row.cwnd.0 >= cwnd);
            row.expect("cwnd gets there").at
        };
        let rounds = reached(w_max + 4).since(reached(w_max)).as_secs_f64() / 0.1;
        assert_close(rounds, smooth_part / PER_ACK, 0.05);
    }
}

#[test]
fn beyond_w_max_growth_accelerates_to_the_largest_increment() {
    let mut pipe = Pipe::new(open_path(&[1_000]), "bic", &[]);
    pipe.run_until(at("8s"));
    let w_max = pipe.reductions()[0].0.cwnd.0;
    let gained = |excess| growth_from(&pipe, |row| row.cwnd.0 >= w_max + excess).1 as f64;
    assert!(gained(0) <= 1.0, "{}", gained(0));
    // Growth is a third of the distance from W_max, which increases continuously.
    assert_close(gained(12), 12.0 * ((PER_ACK / 3.0).exp() - 1.0), 0.15);
    assert_close(gained(60), 16.0 * PER_ACK, 0.1);
}

#[test]
fn fast_convergence_lowers_w_max_if_the_window_did_not_recover() {
    let w_max = |params: &[(&str, f64)]| {
        let mut pipe = Pipe::new(open_path(&[1_000, 8_000]), "bic", params);
        pipe.run_until(at("5s"));
        let [(first, _), (before, after)] = pipe.reductions()[..] else { panic!("two losses") };
        assert!(before.cwnd < first.cwnd);
        (before.cwnd.0, after.value("w_max_packets"))
    };
    // (1 + beta) / 2 = 0.9.
    let (cwnd, recorded) = w_max(&[]);
    assert_eq!(recorded, (cwnd as f64 * (1024.0 + 819.0) / 2048.0).floor());
    let (cwnd, recorded) = w_max(&[("fast_convergence", 0.0)]);
    assert_eq!(recorded, cwnd as f64);
}

#[test]
fn a_timeout_resets_w_max() {
    let mut pipe = Pipe::new(open_path(&[400]), "bic", &[]);
    pipe.run_until(at("2s"));
    assert!(pipe.rows.last().expect("rows").value("w_max_packets") > 0.0);
    pipe.time_out();
    pipe.run_until(at("2200ms"));
    assert_eq!(pipe.rows.last().expect("rows").value("w_max_packets"), 0.0);
}

#[test]
fn slow_start_ends_at_the_initial_threshold() {
    let cwnd_after_five_rounds = |params: &[(&str, f64)]| {
        let mut pipe = Pipe::new(open_path(&[]), "bic", params);
        pipe.run_until(at("650ms"));
        pipe.window.cwnd.0
    };
    assert_eq!(cwnd_after_five_rounds(&[]), 320);
    let limited = cwnd_after_five_rounds(&[("initial_ssthresh", 100.0)]);
    assert!((105..200).contains(&limited), "{limited}: at least 5 % per round trip, no longer twice");
}
