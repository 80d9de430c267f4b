//! Tests that two CUBIC flows converge to equal shares.
//!
//! Source: RFC 9438, sections 3.4, 4.7 and 5.6. The time is measured in K, the time CUBIC takes from a reduction back
//! to W_max: (W_max (1 - beta) / C)^(1/3), with W_max half of the capacity of path and buffer. A loss reduces both
//! windows by a factor of 0.7, and their difference by the same factor, so it vanishes after ten losses (0.7^10 =
//! 0.03).

use crate::support::{bulk, of, run};
use thalweg_plan::plan::Experiment;
use thalweg_trace::Memory;
use thalweg_units::{MTU, Rate, Span, Time};

const RTT: Span = Span::from_millis(20);
const LATE_S: f64 = 20.0;

/// Maximum difference between a fair share and a half, averaged over [`WINDOW_K`] and [`SEEDS`]: losses do not affect
/// both flows simultaneously.
const TOLERANCE: f64 = 0.1;

const CONVERGED_K: f64 = 10.0;

const WINDOW_K: f64 = 10.0;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// Returns K in seconds if the path and a buffer of one BDP hold two equal windows.
fn k_s(rate: Rate) -> f64 {
    let w_max = rate.bytes_in(RTT).0 as f64 / MTU.0 as f64;
    (w_max * 0.3 / 0.4).cbrt()
}

fn two(cc: &str, rate: Rate, seed: u64) -> Experiment {
    let seconds = LATE_S + (CONVERGED_K + WINDOW_K) * k_s(rate);
    let mut experiment = bulk(rate, RTT, 1.0, &[cc, cc], seconds.ceil() as u64);
    experiment.seed = seed;
    experiment.flows[0].name = "early".to_owned();
    experiment.flows[1].name = "late".to_owned();
    experiment.flows[1].start_ns = Time::ZERO + Span::from_millis((LATE_S * 1e3) as u64);
    experiment
}

fn late_share(rows: &Memory, from_s: f64, to_s: f64) -> f64 {
    let acked = |flow: &str| {
        let time = |row: &u64| *row as f64 / 1e6 - LATE_S;
        let is_within = |t: &u64| (from_s..=to_s).contains(&time(t));
        let samples: Vec<u64> = rows
            .samples
            .iter()
            .filter(|row| &*row.flow == flow && is_within(&row.t_us))
            .map(|row| row.acked_bytes)
            .collect();
        (samples[samples.len() - 1] - samples[0]) as f64
    };
    acked("late") / (acked("late") + acked("early"))
}

fn is_fair(share: f64) -> bool {
    (share - 0.5).abs() <= TOLERANCE
}

fn share(name: &str, rate: Rate, from_k: f64, to_k: f64, experiment: impl Fn(u64) -> Experiment) -> f64 {
    let k = k_s(rate);
    let shares: Vec<f64> = SEEDS.map(|seed| late_share(&run(&experiment(seed)), from_k * k, to_k * k)).collect();
    println!("convergence: {name}, {rate}, {from_k} K to {to_k} K (K = {k:.1} s): late share {shares:.2?}");
    shares.iter().sum::<f64>() / shares.len() as f64
}

#[test]
fn a_late_cubic_flow_reaches_its_fair_share_within_ten_reductions() {
    for rate in [Rate::from_mbps(20), Rate::from_mbps(100)] {
        let late = share("cubic", rate, CONVERGED_K, CONVERGED_K + WINDOW_K, |seed| two("cubic", rate, seed));
        assert!(is_fair(late), "{late}");
    }
}

#[test]
fn a_late_cubic_flow_lacks_its_fair_share_before_the_first_reductions() {
    // Control: the same check at an earlier time.
    let rate = Rate::from_mbps(100);
    let soon = share("cubic", rate, 0.0, 1.0, |seed| two("cubic", rate, seed));
    assert!(!is_fair(soon), "{soon}");
}

#[test]
fn flows_that_do_not_converge_fail_the_check() {
    let rate = Rate::from_mbps(20);
    let (from, to) = (CONVERGED_K, CONVERGED_K + WINDOW_K);
    // Control: with a longer path, the share stays smaller.
    let far = share("cubic, late one 100 ms longer", rate, from, to, |seed| {
        let mut experiment = two("cubic", rate, seed);
        experiment.flows[1].extra_rtt_ns = Span::from_millis(100);
        experiment
    });
    assert!(!is_fair(far), "{far}");
    // Control: a BBR flow that competes with CUBIC in a shallow buffer takes nearly all.
    let unlike = share("late bbr, 0.1 BDP of buffer", rate, from, to, |seed| {
        let mut experiment = two("cubic", rate, seed);
        crate::support::set_path(&mut experiment, rate, RTT, 0.1);
        experiment.flows[1].cc = "bbr".to_owned();
        experiment
    });
    assert!(!is_fair(unlike), "{unlike}");
}

#[test]
fn identical_flows_share_equally() {
    for cc in ["reno", "cubic", "bbr"] {
        let rows = run(&bulk(Rate::from_mbps(100), RTT, 2.0, &[cc, cc], 60));
        let (first, second) = (rows.flows[0].goodput_bps, rows.flows[1].goodput_bps);
        let jain = (first + second).powi(2) / (2.0 * (first * first + second * second));
        assert!(jain > 0.9, "{cc} {first} {second}");
    }
    let mut unlike = bulk(Rate::from_mbps(100), RTT, 2.0, &["reno", "reno"], 60);
    unlike.flows[1].extra_rtt_ns = Span::from_millis(100);
    let rows = run(&unlike);
    let goodput = |flow| of(&rows, flow)[0].goodput_bps;
    assert!(goodput("reno-0") > 2.0 * goodput("reno-1"), "a longer way costs Reno its share");
}
