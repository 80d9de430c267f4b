//! BBRv1 as published and as Linux has it, on an ideal path.

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use std::collections::BTreeMap;
use thalweg_cc::CaState;
use thalweg_units::{Chance, Packets, Rate, Span, Time};

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

/// 50 Mbit/s, 40 ms, and room for four BDPs of queue.
fn usual_path() -> Path {
    Path::new("50Mbps", "40ms", 700)
}

fn run(path: Path, params: &[(&str, f64)], end: &str) -> Pipe {
    let mut pipe = Pipe::new(path, "bbr", params);
    pipe.run_until(at(end));
    pipe
}

/// Runs of rows with the same value of `name`: the value, first row, first row after it.
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
    let (_, start, end) = phases.iter().find(|(found, ..)| *found == mode).expect("the mode is entered and left");
    (start, end)
}

fn bdp_of(row: &Row) -> f64 {
    row.value("bw_bps") / 8.0 * row.value("min_rtt_us") / 1e6 / 1448.0
}

/// Three bursts at the pacing rate, an even number, and two when probing: the headroom that a target gets.
fn most_headroom(row: &Row) -> f64 {
    3.0 * (row.pacing_rate.0 as f64 / 8.0 / 1024.0 / 1448.0).max(2.0) + 2.0 + 2.0
}

#[test]
fn startup_about_doubles_the_rate_each_round_and_ends_three_rounds_after_growth_did() {
    let pipe = run(usual_path(), &[], "3s");
    let (_, end) = phase(&pipe, STARTUP);
    let starts = phases(&pipe, "round").into_iter().map(|(.., row)| (row.value("round") as u64, row.value("bw_bps")));
    let bw: BTreeMap<u64, f64> = starts.take_while(|(_, bw)| *bw < 0.99 * 50e6).collect();
    for (round, bw_bps) in bw.range(3..) {
        assert!(*bw_bps > 1.7 * bw[&(round - 1)], "round {round}: {bw:?}");
    }
    // The round after these brings the last quarter at most, and is the first without enough growth.
    let last_growth = *bw.keys().last().expect("it grew");
    assert!((5..=7).contains(&last_growth), "the pipe holds 17 initial windows: {bw:?}");
    assert_eq!(end.value("round") as u64, last_growth + 3, "{bw:?}");
    assert_eq!(end.value("mode"), DRAIN);
}

#[test]
fn an_application_that_limits_the_rate_does_not_end_startup() {
    let mut path = usual_path();
    path.bursts = Some((Packets(4), Span::from_millis(10)));
    let pipe = run(path, &[], "5s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.value("round") > 50.0);
    assert_eq!((last.value("mode"), last.value("full_bw_reached")), (STARTUP, 0.0));
}

#[test]
fn startup_paces_and_windows_at_two_over_ln_two() {
    let pipe = run(usual_path(), &[], "100ms");
    let row = pipe.rows.last().expect("rows");
    assert!((row.value("pacing_gain") - 2.885).abs() < 0.004, "{row:?}");
    assert_eq!(row.value("cwnd_gain"), row.value("pacing_gain"));
}

#[test]
fn drain_paces_at_the_inverse_and_ends_when_a_bdp_is_under_way() {
    let pipe = run(usual_path(), &[], "3s");
    let (start, end) = phase(&pipe, DRAIN);
    assert!((start.value("pacing_gain") * 2.885 - 1.0).abs() < 0.01, "{start:?}");
    let ssthresh = start.ssthresh.0 as f64 - bdp_of(start);
    // Three bursts at the rate of Startup: a millisecond's worth each.
    assert!((30.0..=42.0).contains(&ssthresh), "ssthresh says where Startup ended: {start:?}");
    let target = bdp_of(end);
    assert!(start.inflight.0 as f64 > 1.5 * target, "Startup has queued: {start:?}");
    assert!((end.inflight.0 as f64) <= target + most_headroom(end), "{end:?}");
    assert!((end.inflight.0 as f64) > 0.9 * target, "and not much later: {end:?}");
    assert_eq!(end.value("mode"), PROBE_BW);
}

#[test]
fn what_is_delivered_before_the_next_departure_is_not_under_way_any_more() {
    let mut path = usual_path();
    path.lead = Span::from_millis(10);
    let pipe = run(path, &[], "3s");
    let (_, end) = phase(&pipe, DRAIN);
    // 10 ms of 50 Mbit/s are 43 packets.
    let above = end.inflight.0 as f64 - bdp_of(end);
    assert!((43.0..=43.0 + most_headroom(end)).contains(&above), "{above} above the BDP: {end:?}");
}

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
        // A probe lasts until the pipe holds a quarter more, which takes a round trip; the drain no longer than that.
        let (probing, draining) = (drain.at.since(probe.at), cruise.at.since(drain.at));
        assert!(probing >= min_rtt && probing < min_rtt.scale(2, 1), "{probing}");
        assert!(draining <= min_rtt.scale(11, 10), "{draining}");
        let cruising = end.at.since(cruise.at);
        assert!(cruising >= min_rtt.scale(6, 1) && cruising < min_rtt.scale(65, 10), "{cruising}");
        let (probed, after) = (drain.inflight.0 as f64, cruise.inflight.0 as f64);
        assert!(probed > 1.2 * bdp_of(drain), "{drain:?}");
        assert!(after <= bdp_of(cruise) + most_headroom(cruise), "{cruise:?}");
    }
}

#[test]
fn probe_bw_begins_with_any_phase_but_the_drain_as_the_seed_has_it() {
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
fn the_probing_gain_can_be_set_and_the_drain_gets_its_complement() {
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
    assert!((0.0..=most_headroom(row) + 1.0).contains(&above), "{above} above two BDPs: {row:?}");
}

#[test]
fn after_ten_seconds_cwnd_is_four_for_200_ms_and_a_round_and_then_what_it_was() {
    let pipe = run(usual_path(), &[], "14s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    let before = pipe.row_at(Time(start.at.0 - 1));
    // The handshake's round-trip time was the smallest: it alone did not wait for a packet to be sent.
    let waited = start.at.since(at("40ms"));
    assert!(waited > Span::from_secs(10) && waited < Span::from_millis(10_010), "{waited}");
    assert!(pipe.rows.iter().filter(|row| row.value("mode") == PROBE_RTT).all(|row| row.cwnd == Packets(4)));
    let drained = pipe.rows.iter().find(|row| row.at > start.at && row.inflight <= Packets(4)).expect("it drains");
    let low = end.at.since(drained.at);
    assert!(low > Span::from_millis(200) && low < Span::from_millis(300), "{low}");
    let regained = end.cwnd.0 - before.cwnd.0;
    assert!(regained <= 2, "{before:?} {end:?}");
    assert_eq!(end.value("mode"), PROBE_BW);
    assert_ne!(end.value("pacing_gain"), 0.75, "it enters at any phase but the drain");
}

#[test]
fn probe_rtt_lasts_a_round_where_that_is_longer_than_200_ms() {
    // Four packets take 464 ms.
    let pipe = run(Path::new("100kbps", "100ms", 2_000), &[], "60s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    let drained = pipe.rows.iter().find(|row| row.at >= start.at && row.inflight <= Packets(4)).expect("it drains");
    let low = end.at.since(drained.at);
    assert!(low >= Span::from_millis(460) && low < Span::from_millis(700), "{low}");
}

#[test]
fn what_probe_rtt_holds_back_does_not_lower_the_bandwidth() {
    // 200 ms are 20 rounds here: twice as many as a maximum counts for.
    let pipe = run(Path::new("50Mbps", "10ms", 700), &[], "14s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    assert!(end.value("round") - start.value("round") > 15.0);
    assert!(end.value("bw_bps") > 0.99 * start.value("bw_bps"), "{start:?} {end:?}");
}

#[test]
fn an_ack_that_the_receiver_delayed_does_not_make_the_rtt_longer() {
    let mut path = usual_path();
    path.bursts = Some((Packets(1), Span::from_millis(200)));
    path.lone_delay = Span::from_millis(30);
    let pipe = run(path, &[], "15s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.rtt > Span::from_millis(70));
    assert_eq!(last.value("min_rtt_us"), 40_000.0, "the handshake's");
}

#[test]
fn probe_rtt_finds_a_path_that_has_become_longer() {
    // An increase of the round-trip time, as by a route change, is a queue to BBR until ProbeRTT.
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    pipe.run_until(at("5s"));
    pipe.set_rtt(Span::from_millis(60));
    pipe.run_until(at("18s"));
    let (before, after) = (pipe.row_at(at("9s")), pipe.rows.last().expect("rows"));
    assert!((40_000.0..41_000.0).contains(&before.value("min_rtt_us")), "{before:?}");
    assert!((60_000.0..61_000.0).contains(&after.value("min_rtt_us")), "{after:?}");
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
    // The latest full sample is of the round before the change or of the one after it.
    let rounds = lower.value("round") - round;
    assert!((9.0..=13.0).contains(&rounds), "after {rounds} rounds");
}

fn policed_path() -> Path {
    let mut path = usual_path();
    path.policer = Some((Rate::from_mbps(5), Packets(200)));
    path
}

#[test]
fn a_policer_is_found_and_its_rate_held_for_48_rounds() {
    let pipe = run(policed_path(), &[], "12s");
    let held = phases(&pipe, "lt_bw_in_use");
    let (_, start, end) = held.iter().find(|(in_use, ..)| *in_use == 1.0).expect("the policer is found");
    let rate = start.value("bw_bps") / 5e6;
    assert!((0.9..1.15).contains(&rate), "{rate} of the policer's rate");
    assert_eq!(end.value("round") - start.value("round"), 48.0);
    let probes = |row: &&Row| row.at > start.at && row.at < end.at && row.value("mode") == PROBE_BW;
    assert!(pipe.rows.iter().filter(probes).all(|row| row.value("pacing_gain") == 1.0));
}

#[test]
fn holding_the_rate_of_a_policer_avoids_losses() {
    let loss = |from: &Row, to: &Row| (to.lost - from.lost).0 as f64 / (to.delivered - from.delivered).0 as f64;
    let with = run(policed_path(), &[], "4s");
    let held = phases(&with, "lt_bw_in_use");
    let (_, start, end) = held.iter().find(|(in_use, ..)| *in_use == 1.0).expect("the policer is found");
    // What was sent before is lost during the first round trips yet.
    let held_loss = loss(with.row_at(Time(start.at.0 + 200_000_000)), end);
    assert!(held_loss < 0.005, "{held_loss}");

    let without = run(policed_path(), &[("policer_detection", 0.0)], "4s");
    assert!(without.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));
    let probing_loss = loss(without.row_at(at("1s")), without.rows.last().expect("rows"));
    assert!(probing_loss > 0.04, "{probing_loss}");
}

#[test]
fn losses_at_a_rate_that_changes_are_no_policer() {
    let mut path = usual_path();
    path.policer = Some((Rate::from_mbps(32), Packets(20)));
    let mut pipe = Pipe::new(path, "bbr", &[]);
    for step in 1..=5 {
        // Less than two intervals of four rounds each.
        pipe.run_until(Time(step * 300_000_000));
        pipe.set_policer(Rate::from_mbps(32 >> step), Packets(20));
    }
    let last = pipe.rows.last().expect("rows");
    assert!(last.lost.0 as f64 > 0.195 * last.delivered.0 as f64, "{last:?}");
    assert!(pipe.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));
}

#[test]
fn losses_of_an_application_that_limits_the_rate_are_no_policer() {
    let mut path = policed_path();
    path.policer = Some((Rate::from_mbps(5), Packets(10)));
    // Three quarters of the policer's rate, in bursts that it drops much of; it is done with each before the next.
    path.bursts = Some((Packets(80), Span::from_millis(250)));
    let pipe = run(path.clone(), &[], "8s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.lost.0 as f64 > 0.195 * last.delivered.0 as f64, "{last:?}");
    assert!(pipe.rows.iter().all(|row| row.value("lt_bw_in_use") == 0.0));

    path.bursts = None;
    assert!(run(path, &[], "8s").rows.iter().any(|row| row.value("lt_bw_in_use") == 1.0), "it is found otherwise");
}

#[test]
fn losses_below_the_cliff_cost_little() {
    let mut path = usual_path();
    path.loss = Chance::new(0.05).expect("a chance");
    let pipe = run(path.clone(), &[], "10s");
    let goodput = pipe.goodput(at("3s")).0 as f64 / path.rate.0 as f64;
    assert!(goodput > 0.85, "{goodput}");
}

#[test]
fn losses_above_the_cliff_collapse_the_rate() {
    // With a share p lost, a probe at gain g delivers g (1 - p) times the bandwidth: below 1 it falls for good.
    let goodput = |gain: f64, loss: f64| {
        let mut path = Path::new("50Mbps", "10ms", 700);
        path.loss = Chance::new(loss).expect("a chance");
        let pipe = run(path.clone(), &[("pacing_gain", gain), ("policer_detection", 0.0)], "30s");
        pipe.goodput(at("25s")).0 as f64 / path.rate.0 as f64
    };
    assert!(goodput(1.25, 0.13) > 0.7 && goodput(1.25, 0.28) < 0.4);
    assert!(goodput(1.1, 0.16) < 0.5 * goodput(1.25, 0.13));
}

#[test]
fn the_first_round_of_recovery_conserves_packets_and_recovery_restores_cwnd() {
    let mut path = usual_path();
    path.lose.insert(8_000);
    let pipe = run(path, &[], "4s");
    let enters = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet is lost");
    let leaves = enters + pipe.rows[enters..].iter().position(|row| row.state == CaState::Open).expect("and resent");
    let (before, first, open) = (&pipe.rows[enters - 1], &pipe.rows[enters], &pipe.rows[leaves]);
    assert_eq!(before.value("mode"), PROBE_BW);
    assert_eq!(first.cwnd, first.inflight + first.acked);
    assert!(first.cwnd < before.cwnd);
    assert!(open.cwnd >= before.cwnd, "{open:?}");
}

#[test]
fn each_loss_in_recovery_takes_its_packet_out_of_cwnd() {
    let mut path = usual_path();
    path.loss = Chance::new(0.08).expect("a chance");
    let pipe = run(path, &[], "5s");
    let mut seen = 0;
    for pair in pipe.rows.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let lost = (after.lost - before.lost).0;
        if before.state != CaState::Recovery || after.state != CaState::Recovery || lost <= after.acked.0 {
            continue;
        }
        seen += 1;
        let most = (before.cwnd.0 + after.acked.0 - lost).max((after.inflight + after.acked).0).max(4);
        assert!(after.cwnd.0 <= most, "{before:?} {after:?}");
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn a_timeout_restores_cwnd_afterwards_and_measures_growth_afresh() {
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    pipe.run_until(at("3s"));
    let before = pipe.window.cwnd;
    pipe.time_out();
    assert_eq!(pipe.window.cwnd, Packets(1));
    let count = pipe.rows.len();
    pipe.run_until(at("4s"));
    let open = pipe.rows[count..].iter().find(|row| row.state == CaState::Open).expect("it recovers");
    assert!(open.cwnd.0 + 2 >= before.0, "{open:?}");

    let untouched = phase(&run(usual_path(), &[], "2s"), STARTUP).1.value("round");
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    while pipe.rows.last().is_none_or(|row| row.value("round") < untouched - 1.0) {
        pipe.step();
    }
    pipe.time_out();
    pipe.run_until(at("3s"));
    assert!(phase(&pipe, STARTUP).1.value("round") >= untouched + 2.0);
}

#[test]
fn a_bdp_below_a_packet_is_still_probed_with_two_packets_more() {
    let pipe = run(Path::new("500kbps", "10ms", 100), &[], "9s");
    let cwnd = |gain: f64| {
        let rows = pipe.rows.iter().filter(|row| row.at > at("3s") && row.value("mode") == PROBE_BW);
        rows.filter(|row| row.value("pacing_gain") == gain).map(|row| row.cwnd.0).max().expect("the phase occurs")
    };
    assert_eq!(cwnd(1.25), cwnd(1.0) + 2);
}

#[test]
fn acks_in_bunches_get_room_in_cwnd() {
    let run_with = |grid| {
        let mut path = usual_path();
        path.ack_grid = grid;
        let pipe = run(path, &[], "8s");
        (pipe.rows.last().expect("rows").clone(), pipe.goodput(at("2s")))
    };
    let (bunched, goodput) = run_with(Span::from_millis(20));
    let (steady, _) = run_with(Span::ZERO);
    // 20 ms of 50 Mbit/s are 86 packets.
    assert!((60.0..180.0).contains(&bunched.value("extra_acked_packets")), "{bunched:?}");
    assert!(steady.value("extra_acked_packets") < 10.0, "{steady:?}");
    assert!(bunched.cwnd.0 as f64 > 2.0 * bdp_of(&bunched) + 60.0, "{bunched:?}");
    assert!(goodput.0 > 45_000_000, "{goodput}");
}

#[test]
fn a_restart_from_idle_paces_at_the_bandwidth_and_does_not_probe_the_rtt() {
    let mut path = usual_path();
    path.pause = Some((at("4s"), at("16s")));
    let pipe = run(path, &[], "17s");
    let first = pipe.rows.iter().find(|row| row.at > at("16s")).expect("it goes on");
    let before = pipe.row_at(at("15s"));
    assert_eq!(first.value("mode"), PROBE_BW, "twelve seconds have passed, but the queue was empty");
    assert_eq!(first.value("bw_bps"), before.value("bw_bps"));
    // Packets left at 0.99 of the bandwidth: the queue stays as good as empty.
    let burst = pipe.rows.iter().filter(|row| row.at > at("16s") && row.at < at("16.08s"));
    let queueing = burst.map(|row| row.rtt.saturating_sub(Span::from_millis(40)).as_micros()).max();
    assert!(queueing.expect("rows") < 2_000, "{queueing:?} us");
}

#[test]
fn an_undo_keeps_cwnd_and_looks_for_growth_afresh() {
    let untouched = phase(&run(usual_path(), &[], "2s"), STARTUP).1.value("round");
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    while pipe.rows.last().is_none_or(|row| row.value("round") < untouched - 1.0) {
        pipe.step();
    }
    let cwnd = pipe.window.cwnd;
    pipe.undo(Packets(10_000), Packets::MAX);
    assert_eq!(pipe.window.cwnd, cwnd);
    pipe.run_until(at("2s"));
    // The next round counts as growth from nothing, and three without follow.
    assert_eq!(phase(&pipe, STARTUP).1.value("round"), untouched + 3.0);
}
