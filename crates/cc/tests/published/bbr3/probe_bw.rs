//! Tests of ProbeBW: Down, Cruise, Refill and Up.

use super::{
    CRUISE, DOWN, DRAFT, LINUX, PROBE_BW, REFILL, ROUNDING, UP, bdp_of, pipe, state, usual_path, wait_for,
    wait_for_end, wait_for_phase,
};
use crate::path::Path;
use crate::pipe::{Pipe, Row};
use thalweg_units::{Packets, Probability, Rate, Span};

/// Limits the application to 40 packets every 20 ms, about half of the path's rate.
fn limit(pipe: &mut Pipe) {
    pipe.limit_application(Packets(40), Span::from_millis(20));
}

/// Returns a connection at the start of phase Up, on a path where the first probe precedes the first ProbeRTT.
fn at_probe(path: Path, variant: f64) -> (Pipe, Row) {
    let mut pipe = pipe(path, variant);
    let start = wait_for_phase(&mut pipe, UP);
    (pipe, start)
}

#[test]
fn a_5_exiting_probe_up_on_bandwidth_plateau() {
    for variant in [LINUX, DRAFT] {
        let (mut pipe, start) = at_probe(usual_path(), variant);
        let end = wait_for_end(&mut pipe, "2s");
        assert_eq!(state(&end), (PROBE_BW, Some(DOWN)));
        let rounds = end.value("round") - start.value("round");
        assert!((3.0..=4.0).contains(&rounds), "three rounds without growth: {rounds}");
        assert_eq!(end.lost, start.lost);
    }
}

#[test]
fn a_6_exiting_probe_up_on_loss_when_application_limited() {
    for variant in [LINUX, DRAFT] {
        let (mut pipe, _) = at_probe(usual_path(), variant);
        limit(&mut pipe);
        // Wait until the acknowledged packets were sent under the application's limit.
        let limited_from = pipe.now() + Span::from_millis(150);
        wait_for(&mut pipe, "1s", |row| row.at >= limited_from);
        assert_eq!(state(pipe.rows.last().expect("rows")), (PROBE_BW, Some(UP)));
        pipe.path().loss = Probability::new(0.2).expect("a probability");
        let end = wait_for_end(&mut pipe, "1s");
        // The application has no queued data, so Down may end with the same ACK.
        assert!([Some(DOWN), Some(CRUISE)].contains(&state(&end).1), "{end:?}");
        // HandleInflightTooHigh does not set a bound from application-limited samples.
        assert_eq!(end.value("inflight_longterm_packets"), 0.0);
    }
}

#[test]
fn a_7_never_exiting_probe_up_when_application_limited_with_no_loss() {
    for variant in [LINUX, DRAFT] {
        let (mut pipe, start) = at_probe(Path::new("50Mbps", "20ms", 350), variant);
        limit(&mut pipe);
        // Run until shortly before the first ProbeRTT.
        pipe.run_until(crate::pipe::at("4900ms"));
        let last = pipe.rows.last().expect("rows");
        assert_eq!(state(last), (PROBE_BW, Some(UP)));
        assert!(last.value("round") > start.value("round") + 50.0, "{last:?}");
    }
}

#[test]
fn a_8_exiting_probe_down_on_inflight() {
    for (variant, gain) in [(LINUX, 0.906), (DRAFT, 0.898)] {
        // The buffer is shallow, so that the probe sets a bound.
        let (mut pipe, _) = at_probe(Path::new("50Mbps", "40ms", 60), variant);
        let start = wait_for_phase(&mut pipe, DOWN);
        assert!((start.value("pacing_gain") - gain).abs() < 0.002, "{start:?}");
        let bound = start.value("inflight_longterm_packets");
        assert!(bound > 0.0 && start.inflight.0 as f64 > 0.85 * bound, "{start:?}");
        let end = wait_for_end(&mut pipe, "2s");
        assert_eq!(state(&end), (PROBE_BW, Some(CRUISE)));
        let inflight = end.inflight.0 as f64;
        assert!(inflight <= 0.86 * bound + 2.0 && inflight <= bdp_of(&end) + ROUNDING, "{end:?}");
    }
}

#[test]
fn a_9_exiting_probe_down_after_max_time() {
    for variant in [LINUX, DRAFT] {
        let (mut pipe, _) = at_probe(Path::new("50Mbps", "20ms", 2_000), variant);
        let start = wait_for_phase(&mut pipe, DOWN);
        pipe.set_rate(Rate::from_mbps(43));
        let end = wait_for_end(&mut pipe, "4s");
        assert_eq!(state(&end), (PROBE_BW, Some(REFILL)), "without Cruise");
        let rounds = end.value("round") - start.value("round");
        let waited = end.at.since(start.at);
        assert!(rounds >= 62.0 || waited >= Span::from_secs(2), "{rounds} rounds, {waited}");
    }
}

#[test]
fn a_13_achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(usual_path(), variant);
        wait_for_phase(&mut pipe, CRUISE);
        pipe.path().ack_grid = Span::from_millis(30);
        let start = pipe.now() + Span::from_millis(500);
        pipe.run_until(start + Span::from_millis(1_500));
        let goodput = pipe.goodput(start).0 as f64;
        assert!(goodput > 0.95 * 50e6, "{goodput}");
        let last = pipe.rows.last().expect("rows");
        assert!(last.value("extra_acked_packets") > 60.0, "{last:?}");
        assert!(last.cwnd.0 as f64 > 2.0 * bdp_of(last) + 60.0, "{last:?}");
    }
}

#[test]
fn a_14_correctly_managing_sub_packet_bdps() {
    for variant in [LINUX, DRAFT] {
        // 64 kbit/s and 10 ms: a BDP of a twentieth of a packet.
        let mut pipe = pipe(Path::new("64kbps", "10ms", 20), variant);
        wait_for(&mut pipe, "60s", |row| state(row) == (PROBE_BW, Some(CRUISE)));
        let start = pipe.now();
        pipe.run_until(start + Span::from_secs(60));
        let settled: Vec<&Row> = pipe.rows.iter().filter(|row| row.at > start).collect();
        assert!(settled.iter().all(|row| row.cwnd >= Packets(4)), "cwnd has a floor");
        // The flow behaves as if the path's round-trip time were the transmission time of one packet, since the model's
        // bandwidth is at least one packet per round trip.
        let goodput = pipe.goodput(start).0 as f64;
        assert!((0.9..=1.01).contains(&(goodput / 64e3)), "{goodput}");
        let cruising = settled.iter().rev().find(|row| state(row) == (PROBE_BW, Some(CRUISE))).expect("it cruises");
        assert!((cruising.pacing_rate.0 as f64 / 64e3 - 0.99).abs() < 0.05, "{cruising:?}");
    }
}

#[test]
fn a_15_increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    for variant in [LINUX, DRAFT] {
        // The buffer is shallow, so that there is a bound to raise.
        let mut pipe = pipe(Path::new("10Mbps", "40ms", 12), variant);
        wait_for(&mut pipe, "9s", |row| {
            state(row) == (PROBE_BW, Some(CRUISE)) && row.value("inflight_longterm_packets") > 0.0
        });
        pipe.set_rate(Rate::from_mbps(100));
        let from = pipe.now();
        let full = wait_for(&mut pipe, "30s", |row| row.value("max_bw_bps") > 0.95 * 100e6);
        assert!(full.at.since(from) < Span::from_secs(8), "{}", full.at.since(from));
        // The preceding probe has raised the bound exponentially.
        let probe: Vec<&Row> = pipe.rows.iter().rev().skip_while(|row| state(row).1 != Some(UP)).collect();
        let probe: Vec<&&Row> = probe.iter().take_while(|row| state(row).1 == Some(UP)).collect();
        let mut by_round: Vec<f64> = Vec::new();
        let mut round = f64::NAN;
        for row in probe.iter().rev() {
            if row.value("round") != round {
                round = row.value("round");
                by_round.push(row.value("inflight_longterm_packets"));
            }
        }
        let steps: Vec<f64> = by_round.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
        let (mut run, mut longest) = (0, 0);
        for pair in steps.windows(2) {
            run = if pair[1] >= 1.3 * pair[0] { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        assert!(longest >= 3, "by round: {by_round:?}");
    }
}

#[test]
fn a_16_decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(Path::new("100Mbps", "40ms", 100), variant);
        wait_for_phase(&mut pipe, CRUISE);
        pipe.set_rate(Rate::from_mbps(10));
        let from = pipe.now();
        let low = wait_for(&mut pipe, "2s", |row| row.value("bw_bps") < 50e6);
        assert!(low.value("max_bw_bps") > 90e6, "and the long-term maximum does not yet");
        let adapted = wait_for(&mut pipe, "15s", |row| row.value("max_bw_bps") < 11e6);
        assert!(adapted.at.since(from) < Span::from_secs(9), "two cycles: {}", adapted.at.since(from));
    }
}

#[test]
fn a_21_handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(Path::new("50Mbps", "40ms", 60), variant);
        let set = wait_for(&mut pipe, "9s", |row| {
            state(row) == (PROBE_BW, Some(CRUISE)) && row.value("inflight_longterm_packets") > 0.0
        });
        let before = set.value("inflight_longterm_packets");
        wait_for_phase(&mut pipe, UP);
        let next = pipe.transmissions();
        // Drop the next 12 packets of the probe, far more than 2 %.
        pipe.path().lose.extend(next..next + 12);
        let end = wait_for_end(&mut pipe, "1s");
        assert_eq!(state(&end), (PROBE_BW, Some(DOWN)));
        let after = end.value("inflight_longterm_packets");
        assert!(after >= 0.7 * bdp_of(&end) - 1.0, "not below 70 % of the BDP: {after}");
        assert!(after <= before + 40.0, "at most what was in flight: {before}, {after}");
        assert!(end.lost > set.lost);
    }
}

#[test]
fn a_22_handling_application_limited_sending_during_probe_refill() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(usual_path(), variant);
        let start = wait_for_phase(&mut pipe, REFILL);
        let until = pipe.now() + Span::from_millis(60);
        pipe.path().pause = Some((pipe.now(), until));
        let end = wait_for_end(&mut pipe, "1s");
        assert_eq!(state(&end), (PROBE_BW, Some(UP)));
        assert!(end.value("max_bw_bps") >= start.value("max_bw_bps"), "{end:?}");
        let down = wait_for_end(&mut pipe, "3s");
        assert_eq!(state(&down), (PROBE_BW, Some(DOWN)), "the probe goes on");
        assert!((down.value("max_bw_bps") / 50e6 - 1.0).abs() < 0.02, "{down:?}");
    }
}
