//! The example test cases of draft-ietf-ccwg-bbr-06, appendix A, with the draft's names, for both variants where they
//! agree.

mod loss;
mod probe_bw;
mod probe_rtt;
mod startup;

use crate::path::Path;
use crate::pipe::{Pipe, Row};
use thalweg_units::{MSS, Span};

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

const UP: f64 = 0.0;
const DOWN: f64 = 1.0;
const CRUISE: f64 = 2.0;
const REFILL: f64 = 3.0;

const LINUX: f64 = 0.0;
const DRAFT: f64 = 1.0;

/// Returns a path of 50 Mbit/s and 40 ms, a BDP of 173 packets, with a buffer of four BDPs.
fn usual_path() -> Path {
    Path::new("50Mbps", "40ms", 700)
}

fn pipe(path: Path, variant: f64) -> Pipe {
    Pipe::new(path, "bbr3", &[("variant", variant)])
}

/// Returns the state of BBR: the mode, and the phase if the mode is ProbeBW.
fn state(row: &Row) -> (f64, Option<f64>) {
    let mode = row.value("mode");
    (mode, (mode == PROBE_BW).then(|| row.value("phase")))
}

/// Runs the sender for at most `limit`, until an ACK leaves BBR in a state for which `is_it` holds. Returns the row.
fn wait_for(pipe: &mut Pipe, limit: &str, is_it: impl Fn(&Row) -> bool) -> Row {
    let end = pipe.now() + limit.parse::<Span>().expect("a time");
    let mut checked = pipe.rows.len();
    while pipe.now() <= end {
        pipe.step();
        if let Some(row) = pipe.rows[checked..].iter().find(|row| is_it(row)) {
            return row.clone();
        }
        checked = pipe.rows.len();
    }
    panic!("not within {limit}: {:?}", pipe.rows.last());
}

fn wait_for_phase(pipe: &mut Pipe, phase: f64) -> Row {
    wait_for(pipe, "9s", |row| state(row) == (PROBE_BW, Some(phase)))
}

/// Runs `pipe` until it is in a different state. Returns the first row of that state.
fn wait_for_end(pipe: &mut Pipe, limit: &str) -> Row {
    let present = state(pipe.rows.last().expect("rows"));
    wait_for(pipe, limit, |row| state(row) != present)
}

/// Returns the BDP of the model, in packets.
fn bdp_of(row: &Row) -> f64 {
    row.value("max_bw_bps") / 8.0 * row.value("min_rtt_us") / 1e6 / MSS.0 as f64
}

/// Maximum excess of a target over the BDP: rounding, and two packets in phase Up.
const ROUNDING: f64 = 3.0;
