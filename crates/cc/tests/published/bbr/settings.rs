//! Tests of the effects of parameters.

use super::{DRAIN, PROBE_BW, PROBE_RTT, STARTUP, bdp_of, max_headroom, phase, phases, run, usual_path};
use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_units::{Packets, Probability, Rate, Span, Time};

/// Returns the phases of ProbeBW after the first two seconds: gain, start, end.
fn probing_phases(pipe: &Pipe) -> Vec<(f64, Time, Time)> {
    let phases = phases(pipe, "pacing_gain").into_iter();
    phases.filter(|(_, row, _)| row.at > at("2s")).map(|(gain, start, end)| (gain, start.at, end.at)).collect()
}

/// Returns the times from the start of one probe to that of the next, with the default gains.
fn intervals(pipe: &Pipe) -> Vec<Span> {
    let starts: Vec<Time> =
        probing_phases(pipe).into_iter().filter(|(gain, ..)| *gain == 1.25).map(|(_, start, _)| start).collect();
    starts.windows(2).map(|pair| pair[1].since(pair[0])).collect()
}

fn is(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1.0 / 512.0
}

#[test]
fn the_drain_and_cruising_gains_are_configurable() {
    let pipe = run(usual_path(), &[("probe_drain_gain", 0.9), ("cruise_gain", 0.95)], "6s");
    let gains: Vec<f64> = probing_phases(&pipe).into_iter().map(|(gain, ..)| gain).collect();
    for gain in [1.25, 0.9, 0.95] {
        assert!(gains.iter().any(|measured| is(*measured, gain)), "{gain} is missing: {gains:?}");
    }
    assert!(gains.iter().all(|gain| [1.25, 0.9, 0.95].iter().any(|expected| is(*gain, *expected))), "{gains:?}");
    // Each cruise lasts six round trips: an empty queue does not end it, although its gain is below 1.
    let cruises = probing_phases(&pipe).into_iter().filter(|(gain, ..)| is(*gain, 0.95));
    for (_, start, end) in cruises.skip(1) {
        assert!((240..270).contains(&(end.since(start).0 / 1_000_000)), "{}", end.since(start));
    }
}

#[test]
fn the_old_name_of_the_probing_gain_is_an_alias_and_the_new_one_takes_precedence() {
    let row = |params: &[(&str, f64)]| run(usual_path(), params, "4s").rows.last().cloned().expect("rows");
    let new: Row = row(&[("probe_gain", 1.5)]);
    for params in [&[("pacing_gain", 1.5)][..], &[("pacing_gain", 1.1), ("probe_gain", 1.5)]] {
        let former = row(params);
        assert_eq!((new.delivered, &new.report), (former.delivered, &former.report), "{params:?}");
    }
}

#[test]
fn cruising_phases_are_counted_in_round_trips() {
    for (phases, least, most) in [(2.0, 2, 3), (20.0, 20, 22)] {
        let pipe = run(usual_path(), &[("cruise_phases", phases)], "20s");
        let cruises: Vec<u64> = probing_phases(&pipe)
            .into_iter()
            .filter(|(gain, start, _)| *gain == 1.0 && *start < at("9s"))
            .map(|(_, start, end)| end.since(start).0 / 40_000_000)
            .collect();
        assert!(cruises.len() > 3 && cruises.iter().all(|cruise| (least..most).contains(cruise)), "{cruises:?}");
    }
}

#[test]
fn a_bandwidth_sample_is_kept_until_the_next_probe_at_any_interval() {
    // If the maximum expired between two probes, pacing 1 % below it would lower it repeatedly.
    for params in [&[("cruise_phases", 60.0)][..], &[("probe_clock", 1.0), ("probe_interval_ms", 3000.0)]] {
        let pipe = run(usual_path(), params, "9s");
        let bws = pipe.rows.iter().filter(|row| row.at > at("2s")).map(|row| row.value("bw_bps"));
        let least = bws.fold(f64::INFINITY, f64::min);
        assert!(least > 0.995 * 50e6, "{params:?}: {least}");
    }
}

#[test]
fn a_time_based_probing_clock_has_the_same_interval_on_any_path() {
    for rtt in ["10ms", "80ms"] {
        let path = Path::new("20Mbps", rtt, 700);
        let pipe = run(path, &[("probe_clock", 1.0), ("probe_interval_ms", 700.0)], "9s");
        let intervals = intervals(&pipe);
        assert!(intervals.len() > 5, "{rtt}: {intervals:?}");
        // An ACK arrives at most 1 ms after a probe is due.
        assert!(intervals.iter().all(|it| (700..702).contains(&(it.0 / 1_000_000))), "{rtt}: {intervals:?}");
    }
}

#[test]
fn jitter_spreads_probes_over_the_configured_fraction_of_the_interval() {
    let by_time = [("probe_clock", 1.0), ("probe_interval_ms", 400.0), ("probe_jitter", 0.5)];
    let by_rounds = [("cruise_phases", 8.0), ("probe_jitter", 0.5)];
    // By rounds: probe, drain and 4 to 12 round trips, each of 40 ms.
    for (params, shortest, longest) in [(&by_time[..], 200, 600), (&by_rounds[..], 200, 600)] {
        let intervals: Vec<u64> = (0..6)
            .flat_map(|seed| {
                let mut pipe = Pipe::with_seed(usual_path(), "bbr", params, seed);
                pipe.run_until(at("9s"));
                intervals(&pipe).into_iter().map(|interval| interval.0 / 1_000_000).collect::<Vec<_>>()
            })
            .collect();
        let (min, max) = (*intervals.iter().min().expect("probes"), *intervals.iter().max().expect("probes"));
        assert!(min >= shortest && min < shortest + 60, "{params:?}: {min}");
        assert!(max <= longest + 40 && max > longest - 60, "{params:?}: {max}");
    }
}

#[test]
fn startup_and_drain_gains_are_configurable() {
    let params = [("startup_gain", 2.0), ("startup_cwnd_gain", 3.5), ("drain_gain", 0.5)];
    let pipe = run(usual_path(), &params, "3s");
    let (start, _) = phase(&pipe, STARTUP);
    let (drain, _) = phase(&pipe, DRAIN);
    assert!(is(start.value("pacing_gain"), 2.0) && is(start.value("cwnd_gain"), 3.5), "{start:?}");
    assert!(is(drain.value("pacing_gain"), 0.5) && is(drain.value("cwnd_gain"), 3.5), "{drain:?}");
    // A slower start takes more rounds.
    let rounds = |pipe: &Pipe| phase(pipe, STARTUP).1.value("round");
    assert!(rounds(&run(usual_path(), &[("startup_gain", 1.5)], "6s")) > rounds(&run(usual_path(), &[], "6s")) + 1.0);
}

#[test]
fn probe_rtt_interval_and_duration_are_configurable() {
    let pipe = run(usual_path(), &[("probe_rtt_interval_s", 3.0), ("probe_rtt_duration_ms", 500.0)], "5s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    let waited = start.at.since(at("40ms"));
    assert!(waited > Span::from_secs(3) && waited < Span::from_millis(3_010), "{waited}");
    let drained = pipe.rows.iter().find(|row| row.at > start.at && row.inflight <= Packets(4)).expect("it drains");
    let low = end.at.since(drained.at);
    assert!(low > Span::from_millis(500) && low < Span::from_millis(600), "{low}");
    let never = run(usual_path(), &[("probe_rtt_interval_s", 60.0)], "14s");
    assert!(never.rows.iter().all(|row| row.value("mode") != PROBE_RTT));
}

#[test]
fn cwnd_in_probe_rtt_is_a_number_of_packets_or_a_fraction_of_the_bdp() {
    let cwnd = |params: &[(&str, f64)]| {
        let pipe = run(usual_path(), params, "12s");
        let (start, end) = phase(&pipe, PROBE_RTT);
        assert!(
            end.at.since(start.at) < Span::from_millis(350),
            "what is in flight must not have to fall to 4 packets"
        );
        (end.value("bw_bps"), pipe.row_at(Time(end.at.0 - 1)).cwnd.0)
    };
    assert_eq!(cwnd(&[("probe_rtt_cwnd", 40.0)]).1, 40);
    let (bw, packets) = cwnd(&[("probe_rtt_bdp_share", 0.5)]);
    let half = bw / 8.0 * 0.040 / 1448.0 / 2.0;
    assert!((packets as f64 - half).abs() < 2.0, "{packets} of {half}");
}

#[test]
fn the_allowance_for_ack_aggregation_scales() {
    let above = |gain| {
        let mut path = usual_path();
        path.ack_grid = Span::from_millis(20);
        let pipe = run(path, &[("aggregation_gain", gain)], "8s");
        let row = pipe.rows.last().cloned().expect("rows");
        (row.cwnd.0 as f64 - 2.0 * bdp_of(&row), row.value("extra_acked_packets"), max_headroom(&row))
    };
    let (none, _, headroom) = above(0.0);
    assert!((0.0..=headroom + 1.0).contains(&none), "{none}");
    let (half, bunch, headroom) = above(0.5);
    assert!((bunch / 2.0..=bunch / 2.0 + headroom + 1.0).contains(&half), "{half} of {bunch}");
}

/// Returns a path with a buffer of half a BDP, which a cwnd of 2 BDPs overflows.
fn shallow_path() -> Path {
    Path::new("50Mbps", "40ms", 80)
}

/// Returns the ratio of lost to delivered packets after the first two seconds.
fn loss(pipe: &Pipe) -> f64 {
    let (from, to) = (pipe.row_at(at("2s")), pipe.rows.last().expect("rows"));
    (to.lost - from.lost).0 as f64 / (to.delivered - from.delivered).0 as f64
}

#[test]
fn without_a_loss_threshold_losses_do_not_bound_cwnd() {
    let mut path = usual_path();
    path.loss = Probability::new(0.1).expect("a probability");
    let pipe = run(path, &[], "5s");
    assert!(pipe.rows.iter().all(|row| row.report.iter().all(|(name, _)| *name != "inflight_bound_packets")));
}

#[test]
fn a_round_above_the_loss_threshold_bounds_cwnd_to_a_fraction_of_inflight() {
    let mut pipe = Pipe::new(usual_path(), "bbr", &[("loss_threshold", 0.02), ("loss_beta", 0.5)]);
    pipe.run_until(at("4s"));
    let inflight = pipe.rows.iter().rev().take(150).map(|row| row.inflight.0).max().expect("rows");
    let next = pipe.transmissions();
    pipe.path().lose = (next..next + 20).collect();
    pipe.run_until(at("4200ms"));
    let bound = pipe.rows.iter().find_map(|row| row.report.iter().find(|(name, _)| *name == "inflight_bound_packets"));
    let bound = bound.expect("20 of some 170 packets were lost").1;
    assert!((bound - inflight as f64 / 2.0).abs() < 12.0, "{bound}, {inflight} in flight");
    let bounded = |row: &&Row| row.report.iter().any(|(name, _)| *name == "inflight_bound_packets");
    assert!(pipe.rows.iter().filter(bounded).all(|row| row.cwnd.0 as f64 <= row.value("inflight_bound_packets")));
    // Probes raise the bound again.
    pipe.run_until(at("9s"));
    let last = pipe.rows.last().expect("rows");
    assert!(last.cwnd.0 as f64 > 1.9 * bdp_of(last), "{last:?}");
}

#[test]
fn losses_below_the_threshold_do_not_bound_cwnd() {
    let mut pipe = Pipe::new(usual_path(), "bbr", &[("loss_threshold", 0.2)]);
    pipe.run_until(at("4s"));
    let next = pipe.transmissions();
    pipe.path().lose = (next..next + 20).collect();
    pipe.run_until(at("5s"));
    let last = pipe.rows.last().expect("rows");
    assert!(
        last.lost == Packets(20) && last.report.iter().all(|(name, _)| *name != "inflight_bound_packets"),
        "{last:?}"
    );
}

#[test]
fn loss_response_and_headroom_each_lower_the_losses_at_a_shallow_buffer() {
    // A shallow buffer overflows when the bandwidth has fallen since it was measured.
    let loss_with = |params: &[(&str, f64)]| {
        let mut pipe = Pipe::new(shallow_path(), "bbr", params);
        for step in 0..10 {
            pipe.set_rate(Rate::from_mbps(if step % 2 == 0 { 50 } else { 30 }));
            pipe.run_until(Time((step + 1) * 1_000_000_000));
        }
        loss(&pipe)
    };
    let (linux, bounded) = (loss_with(&[]), loss_with(&[("loss_threshold", 0.02)]));
    let roomy = loss_with(&[("loss_threshold", 0.02), ("headroom", 0.3)]);
    assert!(bounded < 0.8 * linux && roomy < bounded, "{linux} {bounded} {roomy}");
}

#[test]
fn headroom_is_left_except_while_probing() {
    let params = [("loss_threshold", 0.02), ("headroom", 0.25)];
    let mut pipe = Pipe::new(usual_path(), "bbr", &params);
    pipe.run_until(at("4s"));
    let next = pipe.transmissions();
    pipe.path().lose = (next..next + 20).collect();
    pipe.run_until(at("4500ms"));
    let rows = pipe.rows.iter().filter(|row| row.report.iter().any(|(name, _)| *name == "inflight_bound_packets"));
    let mut cruising = 0;
    for row in rows.filter(|row| row.value("mode") == PROBE_BW && row.value("pacing_gain") == 1.0) {
        cruising += 1;
        assert!(row.cwnd.0 as f64 <= 0.75 * row.value("inflight_bound_packets") + 1.0, "{row:?}");
    }
    assert!(cruising > 20, "{cruising}");
}
