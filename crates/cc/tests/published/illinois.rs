//! Tests of Illinois on an ideal path, against Liu, Basar and Srikant, "TCP-Illinois" (2008).

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span};

/// Returns a path without a bottleneck and without queueing, with one loss.
fn open_path(lose: u64) -> Path {
    let mut path = Path::new("100000Gbps", "100ms", 1_000_000);
    path.lose.insert(lose);
    path
}

/// Returns a bottleneck with a buffer of two BDPs, which fills repeatedly.
fn bottleneck() -> Path {
    let mut path = Path::new("20Mbps", "50ms", 0);
    path.buffer = Packets((path.bdp() * 2.0) as u64);
    path
}

#[test]
fn without_queueing_delay_beta_is_an_eighth_and_alpha_ten() {
    let mut pipe = Pipe::new(open_path(400), "illinois", &[]);
    pipe.run_until(at("4s"));
    let (before, after) = pipe.reductions()[0];
    assert_eq!(after.ssthresh.0, before.cwnd.0 - before.cwnd.0 / 8);
    let from = pipe.row_at(at("2s")).cwnd.0;
    let gained = (pipe.row_at(at("3s")).cwnd.0 - from) as f64 / 10.0;
    // A step takes a whole number of ACKs.
    assert!((9.0..=10.0).contains(&gained), "{gained} segments per round trip");
}

#[test]
fn small_windows_behave_like_reno() {
    let alpha_and_loss = |params: &[(&str, f64)]| {
        let mut pipe = Pipe::new(open_path(60), "illinois", params);
        pipe.run_until(at("1500ms"));
        let (before, after) = pipe.reductions()[0];
        let open = pipe.rows.last().expect("rows");
        (after.ssthresh.0 as f64 / before.cwnd.0 as f64, open.value("alpha"))
    };
    assert_eq!(alpha_and_loss(&[("win_thresh", 1000.0)]), (0.5, 1.0));
    let (kept, alpha) = alpha_and_loss(&[]);
    assert!(kept > 0.85 && alpha == 10.0, "{kept} and {alpha}");
}

/// Returns the paper's alpha for an average queueing delay of `average` and a maximum of `most`: k1 / (k2 + da).
fn alpha(average: f64, most: f64) -> f64 {
    let (smallest, largest, low) = (0.3, 10.0, most / 100.0);
    let k1 = (most - low) * smallest * largest / (largest - smallest);
    let k2 = (most - low) * smallest / (largest - smallest) - low;
    (k1 / (k2 + average)).clamp(smallest, largest)
}

/// Returns the paper's beta: k3 + k4 da.
fn beta(average: f64, most: f64) -> f64 {
    let (low, high) = (0.1 * most, 0.8 * most);
    let slope = (0.5 - 0.125) / (high - low);
    (0.125 + slope * (average - low)).clamp(0.125, 0.5)
}

#[test]
fn growth_and_backoff_follow_the_functions_of_queueing_delay_in_the_paper() {
    let mut pipe = Pipe::new(bottleneck(), "illinois", &[]);
    pipe.run_until(at("60s"));
    let settled = pipe.rows.iter().filter(|row| row.at > at("20s") && row.state == CaState::Open);
    let mut delays = Vec::new();
    for row in settled {
        let (average, most) = (row.value("queueing_delay_us"), row.value("max_queueing_delay_us"));
        if average > most / 100.0 {
            let (value, expected) = (row.value("alpha"), alpha(average, most));
            assert!((value - expected).abs() < 0.02 + 0.02 * expected, "alpha {value} and not {expected}");
        }
        let (value, expected) = (row.value("beta"), beta(average, most));
        assert!((value - expected).abs() < 1.0 / 64.0, "beta {value} and not {expected}");
        delays.push(average / most);
    }
    let (least, most) =
        delays.iter().fold((1.0f64, 0.0f64), |(least, most), delay| (least.min(*delay), most.max(*delay)));
    assert!(least < 0.5 && most > 0.8, "delays from {least} to {most} of the largest");
}

#[test]
fn a_loss_with_a_full_queue_halves_the_window() {
    let mut pipe = Pipe::new(bottleneck(), "illinois", &[]);
    pipe.run_until(at("40s"));
    let (before, after) = *pipe.reductions().last().expect("the buffer overflows");
    assert!((after.ssthresh.0 as f64 / before.cwnd.0 as f64 - 0.5).abs() < 0.01, "{before:?} {after:?}");
}

#[test]
fn growth_is_fastest_again_only_after_theta_round_trips_without_a_queue() {
    let rounds = |theta: f64| {
        let mut pipe = Pipe::new(open_path(400), "illinois", &[("theta", theta)]);
        pipe.run_until(at("2s"));
        // A single round trip with longer delays.
        pipe.set_rtt(Span::from_millis(150));
        pipe.run_until(at("2200ms"));
        pipe.set_rtt(Span::from_millis(100));
        pipe.run_until(at("5s"));
        let is_slow = |row: &Row| row.at > at("2s") && row.value("alpha") < 5.0;
        let slow = pipe.rows.iter().position(is_slow).expect("a delay slows growth");
        let fast = pipe.rows[slow..].iter().find(|row| row.value("alpha") == 10.0).expect("growth recovers");
        fast.at.since(pipe.rows[slow].at).as_secs_f64() / 0.1
    };
    let (five, ten) = (rounds(5.0), rounds(10.0));
    assert!((ten - five - 5.0).abs() < 0.6, "{five} and {ten} round trips");
}
