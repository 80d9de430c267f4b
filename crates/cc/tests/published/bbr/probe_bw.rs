//! Tests that ProbeBW keeps the pipe full and the queue short, also under disturbances.

use super::{DRAIN, PROBE_BW, bdp_of, max_headroom, phase, phases, run, usual_path};
use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_units::{Packets, Probability, Rate, Span};

#[test]
fn probe_bw_probes_for_a_round_trip_drains_and_cruises_for_six() {
    let pipe = run(usual_path(), &[], "8s");
    let phases: Vec<_> = phases(&pipe, "pacing_gain").into_iter().filter(|(_, row, _)| row.at > at("2s")).collect();
    assert!(phases.len() > 30, "{}", phases.len());
    let min_rtt = Span::from_micros(pipe.rows.last().expect("rows").value("min_rtt_us") as u64);
    let is = |gain: f64, value: f64| (gain - value).abs() < 1e-9;
    for cycle in phases.windows(3).filter(|cycle| is(cycle[0].0, 1.25)) {
        let [(_, probe, drain), (drain_gain, ..), (cruise_gain, cruise, end)] = cycle else { unreachable!() };
        assert!(is(*drain_gain, 0.75) && is(*cruise_gain, 1.0), "{drain_gain} {cruise_gain}");
        // A probe lasts until a quarter more is in flight, which takes a round trip; the drain lasts no longer.
        let (probing, draining) = (drain.at.since(probe.at), cruise.at.since(drain.at));
        assert!(probing >= min_rtt && probing < min_rtt.scale(2, 1), "{probing}");
        assert!(draining <= min_rtt.scale(11, 10), "{draining}");
        let cruising = end.at.since(cruise.at);
        assert!(cruising >= min_rtt.scale(6, 1) && cruising < min_rtt.scale(65, 10), "{cruising}");
        let (probed, after) = (drain.inflight.0 as f64, cruise.inflight.0 as f64);
        assert!(probed > 1.2 * bdp_of(drain), "{drain:?}");
        assert!(after <= bdp_of(cruise) + max_headroom(cruise), "{cruise:?}");
    }
}

#[test]
fn probe_bw_begins_with_a_random_phase_other_than_the_drain() {
    let mut first: Vec<f64> = (0..40)
        .map(|seed| {
            let mut pipe = Pipe::with_seed(usual_path(), "bbr", &[], seed);
            pipe.run_until(at("1s"));
            phase(&pipe, DRAIN).1.value("pacing_gain")
        })
        .collect();
    first.sort_unstable_by(f64::total_cmp);
    first.dedup();
    assert_eq!(first, [1.0, 1.25]);
}

#[test]
fn the_probing_gain_is_configurable_and_the_drain_gain_is_its_complement() {
    for (gain, drain) in [(1.1, 0.9), (1.5, 0.5)] {
        let pipe = run(usual_path(), &[("pacing_gain", gain)], "4s");
        let gains: Vec<f64> =
            pipe.rows.iter().filter(|row| row.at > at("2s")).map(|row| row.value("pacing_gain")).collect();
        let max = gains.iter().copied().fold(0.0, f64::max);
        let min = gains.iter().copied().fold(9.0, f64::min);
        assert!((max - gain).abs() < 1.0 / 512.0 && (min - drain).abs() < 1.0 / 512.0, "{max} {min}");
    }
}

#[test]
fn cruising_paces_one_percent_below_the_bandwidth() {
    let pipe = run(usual_path(), &[], "8s");
    let cruise = |row: &&Row| row.at > at("2s") && row.value("pacing_gain") == 1.0;
    for row in pipe.rows.iter().filter(cruise) {
        let share = row.pacing_rate.0 as f64 / row.value("bw_bps");
        assert!((share - 0.99).abs() < 1e-4, "{share}");
    }
}

#[test]
fn the_link_is_full_and_the_queue_is_short() {
    let path = usual_path();
    let pipe = run(path.clone(), &[], "8s");
    let goodput = pipe.goodput(at("2s")).0 as f64 / path.rate.0 as f64;
    assert!(goodput > 0.97, "{goodput}");
    let mut queueing: Vec<u64> = pipe
        .rows
        .iter()
        .filter(|row| row.at > at("2s"))
        .map(|row| row.rtt.saturating_sub(path.rtt).as_micros())
        .collect();
    queueing.sort_unstable();
    let median = queueing[queueing.len() / 2];
    assert!(median < 4_000, "a tenth of the round-trip time: {median} us");
    assert_eq!(pipe.rows.last().expect("rows").lost, Packets::ZERO);
}

#[test]
fn cwnd_is_two_bdps_and_headroom_in_probe_bw() {
    let pipe = run(usual_path(), &[], "8s");
    let row = pipe.rows.last().expect("rows");
    let above = row.cwnd.0 as f64 - 2.0 * bdp_of(row) - row.value("extra_acked_packets");
    assert!((0.0..=max_headroom(row) + 1.0).contains(&above), "{above} above two BDPs: {row:?}");
}

#[test]
fn bandwidth_is_a_maximum_over_ten_rounds() {
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    pipe.run_until(at("4s"));
    let full = pipe.rows.last().expect("rows").value("bw_bps");
    let round = pipe.rows.last().expect("rows").value("round");
    pipe.set_rate(Rate::from_mbps(10));
    pipe.run_until(at("9s"));
    let lower = pipe.rows.iter().find(|row| row.at > at("4s") && row.value("bw_bps") < 0.5 * full).expect("it adapts");
    // The latest sample at the full rate is from the round before the change or the one after it.
    let rounds = lower.value("round") - round;
    assert!((9.0..=13.0).contains(&rounds), "after {rounds} rounds");
}

#[test]
fn losses_below_the_cliff_hardly_reduce_the_rate() {
    let mut path = usual_path();
    path.loss = Probability::new(0.05).expect("a probability");
    let pipe = run(path.clone(), &[], "10s");
    let goodput = pipe.goodput(at("3s")).0 as f64 / path.rate.0 as f64;
    assert!(goodput > 0.85, "{goodput}");
}

#[test]
fn losses_above_the_cliff_collapse_the_rate() {
    // With a loss ratio p, a probe at gain g delivers g (1 - p) times the bandwidth: if that is below 1, the estimate
    // keeps falling.
    let goodput = |gain: f64, loss: f64| {
        let mut path = Path::new("50Mbps", "10ms", 700);
        path.loss = Probability::new(loss).expect("a probability");
        let pipe = run(path.clone(), &[("pacing_gain", gain), ("policer_detection", 0.0)], "30s");
        pipe.goodput(at("25s")).0 as f64 / path.rate.0 as f64
    };
    assert!(goodput(1.25, 0.13) > 0.7 && goodput(1.25, 0.28) < 0.4);
    assert!(goodput(1.1, 0.16) < 0.5 * goodput(1.25, 0.13));
}

#[test]
fn a_bdp_below_one_packet_is_probed_with_two_additional_packets() {
    let pipe = run(Path::new("500kbps", "10ms", 100), &[], "9s");
    let cwnd = |gain: f64| {
        let rows = pipe.rows.iter().filter(|row| row.at > at("3s") && row.value("mode") == PROBE_BW);
        rows.filter(|row| row.value("pacing_gain") == gain).map(|row| row.cwnd.0).max().expect("the phase occurs")
    };
    assert_eq!(cwnd(1.25), cwnd(1.0) + 2);
}

#[test]
fn aggregated_acks_raise_cwnd() {
    let run_with = |grid| {
        let mut path = usual_path();
        path.ack_grid = grid;
        let pipe = run(path, &[], "8s");
        (pipe.rows.last().expect("rows").clone(), pipe.goodput(at("2s")))
    };
    let (bunched, goodput) = run_with(Span::from_millis(20));
    let (steady, _) = run_with(Span::ZERO);
    // 20 ms at 50 Mbit/s are 86 packets.
    assert!((60.0..180.0).contains(&bunched.value("extra_acked_packets")), "{bunched:?}");
    assert!(steady.value("extra_acked_packets") < 10.0, "{steady:?}");
    assert!(bunched.cwnd.0 as f64 > 2.0 * bdp_of(&bunched) + 60.0, "{bunched:?}");
    assert!(goodput.0 > 45_000_000, "{goodput}");
}
