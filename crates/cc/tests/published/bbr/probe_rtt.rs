//! Tests of the minimum round-trip time, and of ProbeRTT, which renews it.

use super::{PROBE_BW, PROBE_RTT, phase, run, usual_path};
use crate::path::Path;
use crate::pipe::{Pipe, at};
use thalweg_units::{Packets, Span, Time};

#[test]
fn probe_rtt_sets_cwnd_to_four_for_200_ms_and_a_round_and_then_restores_it() {
    let pipe = run(usual_path(), &[], "14s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    let before = pipe.row_at(Time(start.at.0 - 1));
    // The round-trip time of the handshake was the smallest, because only the handshake had no queueing.
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
    // Four packets take 463 ms to send.
    let pipe = run(Path::new("100kbps", "100ms", 2_000), &[], "60s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    let drained = pipe.rows.iter().find(|row| row.at >= start.at && row.inflight <= Packets(4)).expect("it drains");
    let low = end.at.since(drained.at);
    assert!(low >= Span::from_millis(460) && low < Span::from_millis(700), "{low}");
}

#[test]
fn probe_rtt_does_not_lower_the_bandwidth_estimate() {
    // 200 ms are 20 rounds here, twice the window of the maximum filter.
    let pipe = run(Path::new("50Mbps", "10ms", 700), &[], "14s");
    let (start, end) = phase(&pipe, PROBE_RTT);
    assert!(end.value("round") - start.value("round") > 15.0);
    assert!(end.value("bw_bps") > 0.99 * start.value("bw_bps"), "{start:?} {end:?}");
}

#[test]
fn a_delayed_ack_does_not_raise_the_min_rtt() {
    let mut path = usual_path();
    path.bursts = Some((Packets(1), Span::from_millis(200)));
    path.lone_delay = Span::from_millis(30);
    let pipe = run(path, &[], "15s");
    let last = pipe.rows.last().expect("rows");
    assert!(last.rtt > Span::from_millis(70));
    assert_eq!(last.value("min_rtt_us"), 40_000.0, "the handshake's");
}

#[test]
fn probe_rtt_detects_an_increased_path_rtt() {
    // BBR treats an increase of the round-trip time, such as by a route change, as a queue until ProbeRTT.
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    pipe.run_until(at("5s"));
    pipe.set_rtt(Span::from_millis(60));
    pipe.run_until(at("18s"));
    let (before, after) = (pipe.row_at(at("9s")), pipe.rows.last().expect("rows"));
    assert!((40_000.0..41_000.0).contains(&before.value("min_rtt_us")), "{before:?}");
    assert!((60_000.0..61_000.0).contains(&after.value("min_rtt_us")), "{after:?}");
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
    // Packets are sent at 0.99 of the bandwidth, so the queue stays almost empty.
    let burst = pipe.rows.iter().filter(|row| row.at > at("16s") && row.at < at("16.08s"));
    let queueing = burst.map(|row| row.rtt.saturating_sub(Span::from_millis(40)).as_micros()).max();
    assert!(queueing.expect("rows") < 2_000, "{queueing:?} us");
}
