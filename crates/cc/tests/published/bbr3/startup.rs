//! Tests of Startup and Drain.

use super::{
    DRAFT, DRAIN, LINUX, PROBE_BW, PROBE_RTT, ROUNDING, STARTUP, bdp_of, pipe, state, usual_path, wait_for,
    wait_for_end,
};
use thalweg_units::{Packets, Probability, Rate, Span};

#[test]
fn a_1_exiting_startup_on_bandwidth_plateau() {
    for variant in [LINUX, DRAFT] {
        let mut pipe = pipe(usual_path(), variant);
        let end = wait_for(&mut pipe, "3s", |row| row.value("mode") != STARTUP);
        assert_eq!((end.value("mode"), end.value("full_bw_reached")), (DRAIN, 1.0));
        assert!((end.value("max_bw_bps") / 50e6 - 1.0).abs() < 0.02, "{end:?}");
        let grown = pipe.rows.iter().find(|row| row.value("max_bw_bps") > 0.8 * 50e6).expect("it grows");
        let rounds = end.value("round") - grown.value("round");
        assert!((3.0..=4.0).contains(&rounds), "three rounds without growth: {rounds}");
    }
}

/// 20 packets every 10 ms: about half of the path's rate.
const LIMITED: (Packets, Span) = (Packets(20), Span::from_millis(10));

#[test]
fn a_2_exiting_startup_on_loss_when_application_limited() {
    for variant in [LINUX, DRAFT] {
        let mut path = usual_path();
        path.bursts = Some(LIMITED);
        let mut pipe = pipe(path, variant);
        wait_for(&mut pipe, "1s", |row| row.value("round") >= 10.0);
        pipe.path().loss = Probability::new(0.15).expect("a probability");
        let end = wait_for_end(&mut pipe, "1s");
        // The application has no queued data, so Drain may end with the same ACK.
        assert!(end.value("mode") == DRAIN || end.value("mode") == PROBE_BW, "{end:?}");
        assert_eq!(end.value("full_bw_reached"), 1.0);
        let bound = end.value("inflight_longterm_packets");
        assert!(bound >= bdp_of(&end).floor(), "what was delivered fits: {end:?}");
    }
}

#[test]
fn a_3_exiting_drain_based_on_inflight() {
    for (variant, gain) in [(LINUX, 0.344), (DRAFT, 0.5)] {
        let mut pipe = pipe(usual_path(), variant);
        let start = wait_for(&mut pipe, "3s", |row| row.value("mode") == DRAIN);
        assert!((start.value("pacing_gain") - gain).abs() < 0.002, "{start:?}");
        assert!(start.inflight.0 as f64 > 1.5 * bdp_of(&start), "Startup has queued: {start:?}");
        let end = wait_for_end(&mut pipe, "1s");
        assert_eq!(end.value("mode"), PROBE_BW);
        let above = end.inflight.0 as f64 - bdp_of(&end);
        assert!((-10.0..=ROUNDING).contains(&above), "{above} above the BDP: {end:?}");
    }
}

#[test]
fn a_4_exiting_drain_based_on_time() {
    let rounds_and_excess = |variant| {
        let untouched = wait_for(&mut pipe(usual_path(), variant), "3s", |row| row.value("mode") == DRAIN).at;
        let mut pipe = pipe(usual_path(), variant);
        // The packets acknowledged before Drain begins are sent before the change. The new rate is lower than Drain's,
        // so that the packets in flight do not decrease.
        pipe.run_until(untouched - Span::from_millis(60));
        pipe.set_rate(Rate::from_mbps(15));
        let start = wait_for(&mut pipe, "3s", |row| row.value("mode") == DRAIN);
        let end = wait_for_end(&mut pipe, "9s");
        (end.value("round") - start.value("round"), end.inflight.0 as f64 - bdp_of(&end), end)
    };
    let (rounds, excess, end) = rounds_and_excess(DRAFT);
    assert_eq!((rounds, end.value("mode")), (4.0, PROBE_BW));
    assert!(excess > 10.0, "more than a BDP is in flight: {end:?}");
    let (rounds, ..) = rounds_and_excess(LINUX);
    assert!(rounds > 5.0, "Linux waits for the BDP: {rounds} rounds");
}

#[test]
fn a_7_never_exiting_startup_when_application_limited_with_no_loss() {
    for variant in [LINUX, DRAFT] {
        let mut path = usual_path();
        path.bursts = Some(LIMITED);
        let mut pipe = pipe(path, variant);
        pipe.run_until(crate::pipe::at("4s"));
        let last = pipe.rows.last().expect("rows");
        assert!(last.value("round") > 50.0);
        assert_eq!((last.value("mode"), last.value("full_bw_reached")), (STARTUP, 0.0));
    }
}

#[test]
fn a_12_achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    for variant in [LINUX, DRAFT] {
        let mut path = usual_path();
        path.ack_grid = Span::from_millis(20);
        let mut pipe = pipe(path, variant);
        let end = wait_for(&mut pipe, "3s", |row| row.value("mode") != STARTUP);
        assert!(end.value("extra_acked_packets") > 20.0, "{end:?}");
        assert!(end.cwnd.0 as f64 > 2.0 * 50e6 / 8.0 * 0.040 / 1448.0, "cwnd has room for a bunch: {end:?}");
        assert!(end.value("max_bw_bps") > 0.95 * 50e6, "{end:?}");
    }
}

#[test]
fn a_20_entering_and_exiting_probe_rtt_during_startup() {
    for variant in [LINUX, DRAFT] {
        let mut path = usual_path();
        path.bursts = Some(LIMITED);
        let mut pipe = pipe(path, variant);
        // A longer path, so that no later round-trip time is as small as the first ones.
        wait_for(&mut pipe, "1s", |row| row.value("round") >= 10.0);
        pipe.set_rtt(Span::from_millis(45));
        let probe = wait_for_end(&mut pipe, "6s");
        assert_eq!(probe.value("mode"), PROBE_RTT);
        let after = wait_for_end(&mut pipe, "1s");
        assert_eq!((state(&after), after.value("full_bw_reached")), ((STARTUP, None), 0.0));
    }
}
