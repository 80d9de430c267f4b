//! Tests of BBRv1 as published and as in Linux, on an ideal path.

mod auto_gain;
mod policer;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod settings;
mod startup;
mod vectors;

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

/// Returns a path of 50 Mbit/s and 40 ms with a buffer of four BDPs.
fn usual_path() -> Path {
    Path::new("50Mbps", "40ms", 700)
}

fn run(path: Path, params: &[(&str, f64)], end: &str) -> Pipe {
    let mut pipe = Pipe::new(path, "bbr", params);
    pipe.run_until(at(end));
    pipe
}

/// Returns the completed runs of rows with the same value of `name`: the value, the first row, and the first row after
/// the run.
fn phases<'a>(pipe: &'a Pipe, name: &str) -> Vec<(f64, &'a Row, &'a Row)> {
    let mut phases = Vec::new();
    let mut start = 0;
    for (index, row) in pipe.rows.iter().enumerate() {
        if row.value(name) != pipe.rows[start].value(name) {
            phases.push((pipe.rows[start].value(name), &pipe.rows[start], row));
            start = index;
        }
    }
    phases
}

fn phase(pipe: &Pipe, mode: f64) -> (&Row, &Row) {
    let phases = phases(pipe, "mode");
    let (_, start, end) = phases.iter().find(|(value, ..)| *value == mode).expect("the mode is entered and left");
    (start, end)
}

fn bdp_of(row: &Row) -> f64 {
    row.value("bw_bps") / 8.0 * row.value("min_rtt_us") / 1e6 / 1448.0
}

/// Returns the maximum headroom of a target: three bursts at the pacing rate, rounding to an even number, and two more
/// when probing.
fn max_headroom(row: &Row) -> f64 {
    3.0 * (row.pacing_rate.0 as f64 / 8.0 / 1024.0 / 1448.0).max(2.0) + 2.0 + 2.0
}
