//! Tests that BBR probes for the round-trip time 10 s after it last measured a smaller one.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.1.2 and 4.3.5. As in Linux, the filter restarts
//! when ProbeRTT ends: the time to the next one is 10 s, plus its duration of 200 ms, plus at most two round trips for
//! draining the pipe and starting a round.

use crate::support::{bulk, run};
use thalweg_plan::plan::{Capacity, Experiment, Step};
use thalweg_trace::Memory;
use thalweg_units::{Rate, Span, Time};

const RATE: Rate = Rate::from_mbps(100);
const RTT: Span = Span::from_millis(20);
const FILTER_S: f64 = 10.0;
const DURATION_S: f64 = 0.2;

/// Interval between two samples: short enough to detect every ProbeRTT, and the precision of its time.
const SAMPLE: Span = Span::from_millis(5);

fn sampled(experiment: &Experiment) -> Memory {
    run(&Experiment { sample_interval_ns: SAMPLE, ..experiment.clone() })
}

/// Returns the times in seconds at which cwnd fell to 4 packets, the window of ProbeRTT. The first windows of slow
/// start are larger.
fn probes_s(rows: &Memory) -> Vec<f64> {
    let pairs = rows.samples.iter().zip(&rows.samples[1..]);
    let falls = pairs.filter(|(before, after)| before.cwnd_packets > Some(4) && after.cwnd_packets == Some(4));
    falls.map(|(_, after)| after.t_us as f64 / 1e6).collect()
}

fn is_first_due_at(probes: &[f64], since_s: f64) -> bool {
    let slack = 3.0 * RTT.as_secs_f64() + SAMPLE.as_secs_f64();
    probes.first().is_some_and(|first| (0.0..slack).contains(&(first - since_s - FILTER_S)))
}

fn is_every_ten_seconds(probes: &[f64]) -> bool {
    let slack = 2.0 * RTT.as_secs_f64() + 2.0 * SAMPLE.as_secs_f64();
    let is_due = |pair: &[f64]| (0.0..slack).contains(&(pair[1] - pair[0] - FILTER_S - DURATION_S));
    probes.len() >= 2 && probes.windows(2).all(is_due)
}

fn lone_flow(cc: &str) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 8.0, &[cc], 45);
    // Without jitter, and without losses at the end of Startup: the round-trip time of a retransmission is known only
    // from timestamps, in whole milliseconds, and may be smaller than the path's.
    experiment.start_jitter_ns = Span::ZERO;
    experiment
}

#[test]
fn bbr_probes_for_the_round_trip_time_every_ten_seconds() {
    let probes = probes_s(&sampled(&lone_flow("bbr")));
    println!("probe_rtt: BBR at {probes:.2?} s");
    assert_eq!(probes.len(), 4);
    assert!(is_first_due_at(&probes, 0.0) && is_every_ten_seconds(&probes));
    // Control: CUBIC does not do this.
    assert!(!is_every_ten_seconds(&probes_s(&sampled(&lone_flow("cubic")))));
}

#[test]
fn a_falling_rtt_postpones_probe_rtt() {
    // The link becomes faster at 4 s, so that a full packet takes less time to send than the handshake did before. The
    // filter restarts when the old queue has drained and BBR has measured the new minimum, and the first ProbeRTT
    // follows 10 s later.
    let mut experiment = lone_flow("bbr");
    let step = |at_s: u64, rate_bps| Step { at_ns: Time::ZERO + Span::from_secs(at_s), rate_bps };
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, Rate::from_mbps(2)), step(4, RATE)] };
    let rows = sampled(&experiment);
    let probes = probes_s(&rows);
    let minima: Vec<_> = rows.state.iter().filter(|row| row.key == "min_rtt_us" && row.t_us < 10_000_000).collect();
    let fell = minima.windows(2).rfind(|pair| pair[1].value < pair[0].value).expect("it fell after 4 s");
    let fell_s = fell[1].t_us as f64 / 1e6;
    println!("probe_rtt: BBR whose round-trip time fell last at {fell_s:.2} s at {probes:.2?} s");
    assert!(!is_first_due_at(&probes, 0.0), "this is the control of the test above");
    assert!(fell_s > 4.0 && is_first_due_at(&probes, fell_s - SAMPLE.as_secs_f64()) && is_every_ten_seconds(&probes));
}

#[test]
fn probe_intervals_other_than_ten_seconds_fail_the_check() {
    let of_ten = [10.03, 20.25, 30.47];
    assert!(is_every_ten_seconds(&of_ten));
    assert!(!is_every_ten_seconds(&of_ten.map(|at| at * 1.02)), "a filter of 10.2 s");
    assert!(!is_every_ten_seconds(&of_ten.map(|at| at * 0.5)), "a filter of 5 s, as BBRv3 has");
}
