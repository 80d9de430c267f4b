//! Compares the windows of CUBIC and Reno with the tables of RFC 9438.
//!
//! Section 5 of the RFC assumes deterministic losses, 1/p packets apart, and derives
//!
//! ```text
//!   Reno                         1.2 / sqrt(p)                              (RFC 3649, for the sawtooth of RFC 5681)
//!   CUBIC  (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4)            where that is larger than Reno's
//! ```
//!
//! Tables 1 and 2 (section 5.1) contain the larger of the two for RTTs of 0.1 s and 0.01 s and for three values of C,
//! of which 0.4 is CUBIC's. Their rows from 1e-2 to 1e-6 are simulated.
//!
//! Around W_max the curve is flat: within (1 / C)^(1/3) = 1.36 s of K a window of whole segments does not distinguish
//! W_max from its neighbours. So CUBIC is started from several windows around the expected one, and the mean is
//! compared.

use crate::gates::pipe::{Regular, average_window};
use crate::gates::textbook::{Aimd, TextbookCubic};
use crate::support;
use std::collections::BTreeMap;
use thalweg_cc::Controller;
use thalweg_units::{Rate, Span};

/// Relative tolerance: the RFC's formula neglects the round trips of recovery and rounds its constants (1.22 to 1.2).
const RELATIVE: f64 = 0.05;

/// Absolute tolerance in segments, one each for: rounding down beta times cwnd, rounding down cwnd, and the delay of
/// one round trip with which CUBIC follows Reno's window.
const SEGMENTS: f64 = 3.0;

/// Windows at the first loss, relative to the expected window.
const STARTS: [f64; 5] = [0.5, 0.7, 1.0, 1.4, 2.0];

const MS_100: Span = Span::from_millis(100);
const MS_10: Span = Span::from_millis(10);

/// A row of the RFC's tables 1 and 2: packets between losses, Reno, and CUBIC with C = 0.04, 0.4 and 4.
struct Row {
    period: u64,
    reno: f64,
    cubic: [f64; 3],
}

const TABLE_1: [Row; 5] = [
    Row { period: 100, reno: 12.0, cubic: [12.0, 12.0, 12.0] },
    Row { period: 1_000, reno: 38.0, cubic: [38.0, 38.0, 59.0] },
    Row { period: 10_000, reno: 120.0, cubic: [120.0, 187.0, 333.0] },
    Row { period: 100_000, reno: 379.0, cubic: [593.0, 1054.0, 1874.0] },
    Row { period: 1_000_000, reno: 1200.0, cubic: [3332.0, 5926.0, 10538.0] },
];

const TABLE_2: [Row; 5] = [
    Row { period: 100, reno: 12.0, cubic: [12.0, 12.0, 12.0] },
    Row { period: 1_000, reno: 38.0, cubic: [38.0, 38.0, 38.0] },
    Row { period: 10_000, reno: 120.0, cubic: [120.0, 120.0, 120.0] },
    Row { period: 100_000, reno: 379.0, cubic: [379.0, 379.0, 379.0] },
    Row { period: 1_000_000, reno: 1200.0, cubic: [1200.0, 1200.0, 1874.0] },
];

type Make = fn() -> Box<dyn Controller>;

fn reno() -> Box<dyn Controller> {
    thalweg_cc::build("reno", &BTreeMap::new()).expect("it is in the catalogue")
}

/// Returns CUBIC without HyStart, so that slow start ends with the first loss.
fn cubic() -> Box<dyn Controller> {
    let params = BTreeMap::from([("hystart".to_owned(), 0.0)]);
    thalweg_cc::build("cubic", &params).expect("it is in the catalogue")
}

fn agrees(measured: f64, table: f64) -> bool {
    (measured - table).abs() <= RELATIVE * table + SEGMENTS
}

fn window(make: Make, rtt: Span, period: u64, expected: f64, starts: &[f64]) -> f64 {
    // A million packets between losses take long: the start is close to the expected window, and fewer losses suffice.
    let (settling, measured) = if period < 1_000_000 { (10, 4) } else { (3, 2) };
    let from = |start: &f64| Regular { rtt, period, expected, start: *start, settling, measured };
    let windows: Vec<f64> = starts.iter().map(|start| average_window(make(), from(start))).collect();
    if windows.len() > 1 {
        println!("windows: started from {starts:?} of {expected}: {windows:.1?}");
    }
    windows.iter().sum::<f64>() / windows.len() as f64
}

fn rows_that_agree(
    name: &str,
    make: Make,
    rtt: Span,
    rows: &[Row],
    starts: &[f64],
    column: fn(&Row) -> f64,
) -> Vec<bool> {
    let row = |row: &Row| {
        let (table, p) = (column(row), 1.0 / row.period as f64);
        let measured = window(make, rtt, row.period, table, starts);
        println!("windows: {name}, RTT {} ms, p = {p:e}: {measured:.1}, table {table}", rtt.as_millis());
        agrees(measured, table)
    };
    rows.iter().map(row).collect()
}

fn all(agreement: &[bool]) -> bool {
    agreement.iter().all(|agrees| *agrees)
}

fn none(agreement: &[bool]) -> bool {
    agreement.iter().all(|agrees| !agrees)
}

#[test]
fn reno_has_the_window_of_the_tables_and_a_smaller_decrease_does_not() {
    for (rtt, rows) in [(MS_100, &TABLE_1[..4]), (MS_10, &TABLE_2[..4])] {
        assert!(all(&rows_that_agree("reno", reno, rtt, rows, &[1.0], |row| row.reno)));
    }
    // Control: with beta = 0.7 in place of 0.5 the window is 1.37 times as large, and matches no row in which a segment
    // is small compared with the window.
    let gentle: Make = || Aimd::boxed(1.0, 0.7);
    assert!(none(&rows_that_agree("AIMD(1, 0.7)", gentle, MS_100, &TABLE_1[1..4], &[1.0], |row| row.reno)));
    // The check does not fail for every textbook controller.
    let textbook: Make = || Aimd::boxed(1.0, 0.5);
    assert!(all(&rows_that_agree("AIMD(1, 0.5)", textbook, MS_100, &TABLE_1[1..4], &[1.0], |row| row.reno)));
}

#[test]
fn cubic_has_the_window_of_table_1() {
    assert!(all(&rows_that_agree("cubic", cubic, MS_100, &TABLE_1[..4], &STARTS, |row| row.cubic[1])));
}

#[test]
fn reno_friendly_cubic_has_the_window_of_table_2() {
    assert!(all(&rows_that_agree("cubic", cubic, MS_10, &TABLE_2[..4], &[1.0], |row| row.cubic[1])));
}

#[test]
fn the_window_tables_hold_at_a_loss_ratio_of_one_in_a_million() {
    assert!(all(&rows_that_agree("cubic", cubic, MS_100, &TABLE_1[4..], &[1.08], |row| row.cubic[1])));
}

#[test]
fn the_window_tables_hold_at_a_loss_ratio_of_one_in_a_million_on_a_short_path() {
    assert!(all(&rows_that_agree("cubic", cubic, MS_10, &TABLE_2[4..], &[1.08], |row| row.cubic[1])));
    assert!(all(&rows_that_agree("reno", reno, MS_10, &TABLE_2[4..], &[1.33], |row| row.reno)));
}

#[test]
fn cubic_with_another_c_or_beta_does_not_have_the_window_of_table_1() {
    let rows = &TABLE_1[2..4];
    let agreement = |name: &str, make: Make, column: fn(&Row) -> f64| {
        rows_that_agree(name, make, MS_100, rows, &[0.7, 1.4], column)
    };
    // The three columns belong to three values of C: a textbook CUBIC matches only its own column.
    let of_c: [(&str, Make); 3] = [
        ("textbook CUBIC, C = 0.04", || TextbookCubic::boxed(0.04, 0.7)),
        ("textbook CUBIC, C = 0.4", || TextbookCubic::boxed(0.4, 0.7)),
        ("textbook CUBIC, C = 4", || TextbookCubic::boxed(4.0, 0.7)),
    ];
    assert!(none(&agreement(of_c[0].0, of_c[0].1, |row| row.cubic[1])));
    // With few losses, the window of the textbook CUBIC still depends on its start, so only the first row is compared.
    assert!(agreement(of_c[1].0, of_c[1].1, |row| row.cubic[1])[0]);
    assert!(none(&agreement(of_c[2].0, of_c[2].1, |row| row.cubic[1])));
    let steep = agreement("textbook CUBIC, beta = 0.5", || TextbookCubic::boxed(0.4, 0.5), |row| row.cubic[1]);
    let flat = agreement("textbook CUBIC, beta = 0.9", || TextbookCubic::boxed(0.4, 0.9), |row| row.cubic[1]);
    assert!(none(&steep) && none(&flat));
    // Reno's window does not match CUBIC's.
    assert!(none(&agreement("reno", reno, |row| row.cubic[1])));
}

#[test]
fn under_random_loss_the_reno_window_follows_the_random_loss_constant() {
    // Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", CCR 27 (1997):
    // the constant is sqrt(3/2) = 1.22 for periodic losses and 1.31 for independent ones. This test uses the complete
    // simulator.
    let losses = [1e-3, 5e-4, 2.5e-4];
    let expected = losses.map(|p| 1.31 / f64::sqrt(p));
    for (p, own) in losses.into_iter().zip(expected) {
        let (mean, sure) = mean_window_under_random_loss("reno", p);
        println!("windows: reno, random loss, p = {p:e}: {mean:.1} +- {sure:.1}, 1.31 / sqrt(p) = {own:.1}");
        assert!(agrees(mean, own) && sure < RELATIVE * own + SEGMENTS);
        // Control: half or twice as many losses produce a different window.
        assert!(expected.iter().all(|other| *other == own || !agrees(mean, *other)));
    }
}

/// Returns the mean of cwnd over five seeds, and half the width of its 95 % confidence interval.
fn mean_window_under_random_loss(cc: &str, p: f64) -> (f64, f64) {
    const SEEDS: u64 = 5;
    /// Student's t for 95 % and four degrees of freedom.
    const T: f64 = 2.776;
    let windows: Vec<f64> = (1..=SEEDS)
        .map(|seed| {
            let mut experiment = support::bulk(Rate::from_mbps(200), Span::from_millis(50), 1.0, &[cc], 500);
            experiment.seed = seed;
            experiment.forward.loss = support::loss(p);
            let rows = support::run(&experiment);
            let settled = rows.samples.iter().filter(|row| row.t_us > 20_000_000);
            let windows: Vec<f64> = settled.map(|row| row.cwnd_packets.expect("sim tells it") as f64).collect();
            windows.iter().sum::<f64>() / windows.len() as f64
        })
        .collect();
    let mean = windows.iter().sum::<f64>() / SEEDS as f64;
    let variance = windows.iter().map(|window| (window - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
    (mean, T * (variance / SEEDS as f64).sqrt())
}
