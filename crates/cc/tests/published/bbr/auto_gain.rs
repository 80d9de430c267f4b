//! Tests that the probing gain of `bbr_auto` responds to losses and queueing.

use crate::path::Path;
use crate::pipe::{Pipe, at};
use thalweg_units::Probability;

const PARAMS: [(&str, f64); 5] = [
    ("auto_max_gain", 1.5),
    ("auto_min_gain", 1.0625),
    ("auto_loss_response", 4.0),
    ("auto_queue_response", 0.25),
    ("auto_weight", 0.5),
];

fn run(path: Path, params: &[(&str, f64)]) -> Pipe {
    let mut pipe = Pipe::new(path, "bbr_auto", params);
    pipe.run_until(at("9s"));
    pipe
}

/// Returns the largest pacing gain after 6 s.
fn probe_gain(pipe: &Pipe) -> f64 {
    let late = pipe.rows.iter().filter(|row| row.at > at("6s"));
    late.map(|row| row.value("pacing_gain")).fold(0.0, f64::max)
}

/// Returns the number of packets lost after 6 s.
fn late_losses(pipe: &Pipe) -> u64 {
    let before = pipe.rows.iter().find(|row| row.at > at("6s")).expect("rows").lost.0;
    pipe.rows.last().expect("rows").lost.0 - before
}

#[test]
fn a_path_with_a_deep_buffer_is_probed_with_the_largest_gain() {
    let gain = probe_gain(&run(Path::new("50Mbps", "40ms", 700), &PARAMS));
    assert!(gain > 1.45, "{gain}");
}

#[test]
fn probes_that_overrun_a_shallow_buffer_become_smaller() {
    let path = || Path::new("50Mbps", "40ms", 20);
    let pipe = run(path(), &PARAMS);
    assert!(probe_gain(&pipe) < 1.3, "{}", probe_gain(&pipe));
    let fixed: Vec<(&str, f64)> = [("probe_gain", 1.5), ("auto_max_gain", 1.5), ("auto_min_gain", 1.5)].into();
    let (auto, fixed) = (late_losses(&pipe), late_losses(&run(path(), &fixed)));
    assert!(2 * auto < fixed, "{auto} packets are lost, {fixed} with a fixed gain");
}

#[test]
fn random_loss_does_not_lower_the_gain_below_what_keeps_the_bandwidth() {
    let mut path = Path::new("50Mbps", "40ms", 700);
    path.loss = Probability::new(0.15).expect("a probability");
    let pipe = run(path, &PARAMS);
    assert!(probe_gain(&pipe) > 1.24, "{}", probe_gain(&pipe));
    let delivered = pipe.rows.last().expect("rows").delivered.0 as f64 * 1448.0 * 8.0 / 9.0;
    assert!(delivered > 0.75 * 50e6, "{delivered}");
}
