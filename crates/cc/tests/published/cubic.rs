//! Tests of CUBIC (RFC 9438) and HyStart on an ideal path.

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

const NO_HYSTART: &[(&str, f64)] = &[("hystart", 0.0)];

/// C of RFC 9438, in segments per second cubed.
const C: f64 = 0.4;

/// Returns a path without a bottleneck.
fn open_path(lose: &[u64]) -> Path {
    let mut path = Path::new("100Gbps", "100ms", 1_000_000);
    path.lose.extend(lose);
    path
}

/// Returns the first row of congestion avoidance after `row`, at which the epoch begins.
fn epoch<'a>(pipe: &'a Pipe, row: &Row) -> &'a Row {
    let is_in_epoch = |next: &&Row| next.at > row.at && next.state == CaState::Open && next.value("k_s") > 0.0;
    pipe.rows.iter().find(is_in_epoch).expect("an epoch begins after recovery")
}

fn later(row: &Row, seconds: f64) -> Time {
    Time(row.at.0 + (seconds * 1e9) as u64)
}

#[test]
fn a_loss_multiplies_cwnd_by_seven_tenths() {
    let mut pipe = Pipe::new(open_path(&[400]), "cubic", NO_HYSTART);
    pipe.run_until(at("2s"));
    let (before, after) = pipe.reductions()[0];
    assert_eq!(after.cwnd.0, before.cwnd.0 * 717 / 1024);
    assert!((after.cwnd.0 as f64 / before.cwnd.0 as f64 - 0.7).abs() < 0.001);
    assert_eq!(after.value("w_max_packets"), before.cwnd.0 as f64);
}

#[test]
fn k_is_the_cube_root_of_the_window_reduction_over_c() {
    let mut pipe = Pipe::new(open_path(&[400]), "cubic", NO_HYSTART);
    pipe.run_until(at("3s"));
    let start = epoch(&pipe, pipe.reductions()[0].1);
    let expected = ((start.value("w_max_packets") - start.cwnd.0 as f64) / C).cbrt();
    assert!((start.value("k_s") / expected - 1.0).abs() < 0.01, "{} and not {expected}", start.value("k_s"));
}

#[test]
fn cwnd_follows_the_cubic_function_of_time() {
    let mut pipe = Pipe::new(open_path(&[400]), "cubic", NO_HYSTART);
    pipe.run_until(at("15s"));
    let start = epoch(&pipe, pipe.reductions()[0].1);
    let (w_max, k) = (start.value("w_max_packets"), start.value("k_s"));
    assert!(k > 5.0, "a curve that lasts: {k}");
    // Times before, at and beyond the plateau.
    for seconds in [0.3 * k, 0.6 * k, 0.9 * k, 1.0 * k, 1.2 * k, 1.5 * k, 2.0 * k] {
        let row = pipe.row_at(later(start, seconds));
        let expected = C * (seconds - k).powi(3) + w_max;
        let error = row.cwnd.0 as f64 / expected - 1.0;
        // cwnd is computed for one round trip ahead and reaches that value one round trip later, and C is 0.1 % above
        // 0.4.
        assert!(error.abs() < 0.01, "after {seconds} s: {} and not {expected}", row.cwnd.0);
    }
}

#[test]
fn fast_convergence_lowers_w_max_if_the_window_did_not_recover() {
    // The second loss occurs long before cwnd returns to W_max.
    let mut pipe = Pipe::new(open_path(&[400, 3_000]), "cubic", NO_HYSTART);
    pipe.run_until(at("4s"));
    let [(first, _), (before, after)] = pipe.reductions()[..] else { panic!("two losses") };
    assert!(before.cwnd < first.cwnd);

    // Rounded down to whole segments.
    assert_eq!(after.value("w_max_packets"), (before.cwnd.0 as f64 * 0.85).floor());
}

#[test]
fn a_short_path_grows_no_slower_than_reno_would() {
    // The cubic function alone grows much more slowly than Reno here.
    let mut path = Path::new("100Gbps", "5ms", 1_000_000);
    path.lose.insert(34);
    let mut pipe = Pipe::new(path, "cubic", NO_HYSTART);
    pipe.run_until(at("1.3s"));
    let start = epoch(&pipe, pipe.reductions()[0].1);
    let (from, to) = (start.cwnd.0 as f64, pipe.row_at(later(start, 1.0)).cwnd.0 as f64);
    // RFC 9438, section 4.3: 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments per round trip, over 200 round trips.
    let gained = (to - from) / 200.0;
    assert!((gained - 0.53).abs() < 0.03, "{gained} segments per round trip");
    let of_cubic = C * (1.0 - start.value("k_s")).powi(3) + start.value("w_max_packets");
    assert!(to > 2.0 * of_cubic, "the cubic function alone gives {of_cubic}, there are {to}");
}

#[test]
fn a_timeout_resets_w_max() {
    let mut path = open_path(&[]);
    path.lose = (400..815).collect();
    let mut pipe = Pipe::new(path, "cubic", NO_HYSTART);
    pipe.run_until(at("20s"));
    let row = pipe.rows.iter().find(|row| row.state == CaState::Loss).expect("nothing is heard any more");
    assert_eq!(row.value("w_max_packets"), 0.0);
    assert_eq!(row.cwnd, Packets(2));
}

#[test]
fn an_idle_period_does_not_advance_cwnd_on_the_cubic_curve() {
    let run = |pause| {
        let mut path = open_path(&[400]);
        path.pause = pause;
        let mut pipe = Pipe::new(path, "cubic", NO_HYSTART);
        pipe.run_until(at("20s"));
        pipe
    };
    let idle = run(Some((at("5s"), at("15s"))));
    let busy = run(None);
    // A connection that was idle for 10 s has the same growth as one without the pause.
    let (with, without) = (idle.row_at(at("20s")).cwnd.0 as f64, busy.row_at(at("10s")).cwnd.0 as f64);
    assert!((with / without - 1.0).abs() < 0.02, "{with} and not {without}");
    assert!(busy.row_at(at("20s")).cwnd.0 as f64 > 1.5 * without, "the curve has gone far");
}

#[test]
fn hystart_ends_slow_start_on_a_train_of_acks_before_the_queue_overflows() {
    let path = Path::new("100Mbps", "40ms", 300);
    let mut pipe = Pipe::new(path.clone(), "cubic", &[]);
    pipe.run_until(at("600ms"));
    let row = pipe.rows.iter().find(|row| row.value("hystart_found") == 1.0).expect("the pipe is full");
    assert_eq!(row.ssthresh, row.cwnd);
    // The train is long enough in the first round in which half a BDP is acknowledged. By then, cwnd was half to one
    // BDP, and has grown by the acknowledged packets. Offload adds up to 1 ms.
    let share = row.cwnd.0 as f64 / path.bdp();
    assert!((1.0..1.55).contains(&share), "at {share} BDP");
    assert_eq!(pipe.rows.last().expect("rows").lost, Packets::ZERO);

    let mut without = Pipe::new(path, "cubic", NO_HYSTART);
    without.run_until(at("600ms"));
    assert!(without.rows.last().expect("rows").lost > Packets(100), "slow start overshoots without");
}

#[test]
fn hystart_ends_slow_start_when_the_delay_grows_by_an_eighth() {
    // ACKs 6 ms apart do not form a train.
    let path = Path::new("2Mbps", "200ms", 100);
    let mut pipe = Pipe::new(path, "cubic", &[]);
    pipe.run_until(at("4s"));
    let end = pipe.rows.iter().position(|row| row.value("hystart_found") == 1.0).expect("a queue builds");
    let row = &pipe.rows[end];
    assert_eq!(row.ssthresh, row.cwnd);
    let delay_min_us = row.value("delay_min_us");
    // An eighth of 206 ms exceeds the limit, so the threshold is 16 ms.
    assert!(row.rtt.as_micros() as f64 > delay_min_us + 16_000.0);
    assert!((row.rtt.as_micros() as f64) < 1.5 * delay_min_us, "and it is seen early: {row:?}");
    assert_eq!(row.lost, Packets::ZERO);
}

/// Returns whether HyStart ends slow start when the round-trip time rises from one value to the other, without a train.
fn is_rise_detected(from_ms: u64, to_ms: u64) -> bool {
    let mut path = open_path(&[]);
    path.rtt = Span::from_millis(from_ms);
    let mut pipe = Pipe::new(path, "cubic", &[]);
    // A round lasts slightly longer than the round-trip time: packets sent together arrive together.
    let round = from_ms * 1_000_000 + 500_000;
    pipe.run_until(Time(3 * round));
    pipe.set_rtt(Span::from_millis(to_ms));
    pipe.run_until(Time(6 * round));
    pipe.rows.last().expect("rows").value("hystart_found") == 1.0
}

#[test]
fn the_delay_that_ends_slow_start_is_an_eighth_and_between_4_and_16_ms() {
    for (rtt_ms, least_ms) in [(16, 4), (80, 10), (200, 16)] {
        assert!(!is_rise_detected(rtt_ms, rtt_ms + least_ms), "a rise of {least_ms} ms from {rtt_ms} ms");
        assert!(is_rise_detected(rtt_ms, rtt_ms + least_ms + 1), "a rise of {} ms from {rtt_ms} ms", least_ms + 1);
    }
}

#[test]
fn hystart_is_inactive_below_a_window_of_sixteen() {
    // With ACKs 1.9 ms apart, the train of the first round is long enough while cwnd is still below 16.
    let mut pipe = Pipe::new(Path::new("6.1Mbps", "8ms", 1000), "cubic", &[]);
    pipe.run_until(at("1s"));
    let row = pipe.rows.iter().find(|row| row.value("hystart_found") == 1.0).expect("the train is long");
    assert!((Packets(16)..=Packets(24)).contains(&row.ssthresh), "{row:?}");
}

#[test]
fn an_ack_train_tolerates_one_millisecond_for_offload() {
    // ACKs are 116 us apart: half of the sum of 2.1 ms and 1 ms is 13 of them; half of 2.1 ms alone is 9.
    let mut pipe = Pipe::new(Path::new("100Mbps", "2ms", 1000), "cubic", &[]);
    pipe.run_until(at("50ms"));
    let row = pipe.rows.iter().find(|row| row.value("hystart_found") == 1.0).expect("the train is long");
    assert!((Packets(33)..=Packets(35)).contains(&row.ssthresh), "20 in the round's beginning: {row:?}");
}

#[test]
fn rtt_samples_in_the_first_second_after_a_loss_are_ignored() {
    let mut pipe = Pipe::new(open_path(&[400]), "cubic", NO_HYSTART);
    while pipe.rows.last().is_none_or(|row| row.value("k_s") == 0.0) {
        pipe.step();
    }
    let start = pipe.rows.last().expect("the epoch has begun").clone();
    pipe.set_rtt(Span::from_millis(50));
    pipe.run_until(later(&start, 2.0));
    assert!((99_000.0..101_000.0).contains(&pipe.row_at(later(&start, 0.9)).value("delay_min_us")));
    assert!((49_000.0..51_000.0).contains(&pipe.row_at(later(&start, 1.1)).value("delay_min_us")));
}

#[test]
fn without_a_known_limit_cwnd_grows_by_a_twentieth_per_round_trip() {
    let mut pipe = Pipe::new(open_path(&[]), "cubic", NO_HYSTART);
    pipe.window.ssthresh = Packets(100);
    pipe.run_until(at("2s"));
    let rows: Vec<_> = (6..12).map(|round| pipe.row_at(Time(round * 100_000_000 + 50_000_000)).cwnd.0 as f64).collect();
    for pair in rows.windows(2) {
        assert!((pair[1] / pair[0] - 1.05).abs() < 0.011, "{rows:?}");
    }
}
