//! Tests of Vegas on an ideal path, against Brakmo and Peterson, "TCP Vegas" (1995).

use crate::path::Path;
use crate::pipe::{Pipe, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

/// Returns a bottleneck that never overflows.
fn bottleneck() -> Path {
    Path::new("20Mbps", "40ms", 1_000_000)
}

/// Returns the number of segments that fill the path without a queue, including the one being sent.
fn pipe_bdp() -> f64 {
    bottleneck().bdp() + 1.0
}

/// Returns the minimum and maximum number of the flow's segments in the bottleneck's queue, from `start` on.
fn queued(pipe: &Pipe, start: Time) -> (f64, f64) {
    let settled = pipe.rows.iter().filter(|row| row.at >= start);
    settled.fold((f64::MAX, 0.0), |(least, most), row| {
        let queue = row.cwnd.0 as f64 - pipe_bdp();
        (least.min(queue), most.max(queue))
    })
}

#[test]
fn two_to_four_segments_are_queued_at_the_bottleneck() {
    let mut pipe = Pipe::new(bottleneck(), "vegas", &[]);
    pipe.run_until(at("20s"));
    let (least, most) = queued(&pipe, at("10s"));
    assert!(least >= 1.0 && most <= 5.0, "{least} to {most} segments");
    // Reno fills the same buffer.
    let mut reno = Pipe::new(bottleneck(), "reno", &[]);
    reno.run_until(at("2s"));
    assert!(queued(&reno, at("1s")).1 > 100.0);
}

#[test]
fn the_thresholds_bound_the_number_of_queued_segments() {
    let params = [("alpha", 20.0), ("beta", 24.0)];
    let mut pipe = Pipe::new(bottleneck(), "vegas", &params);
    pipe.run_until(at("20s"));
    let (least, most) = queued(&pipe, at("10s"));
    // Linux's diff exceeds the queue by the factor RTT / BaseRTT: a diff of 20 to 24 is 16 to 19 segments.
    let diff = |queue: f64| queue * (1.0 + queue / pipe_bdp());
    assert!(diff(least) >= 19.0 && diff(most) <= 25.0, "{least} to {most} segments");
}

#[test]
fn slow_start_ends_without_a_loss_when_a_queue_builds_up() {
    let mut pipe = Pipe::new(bottleneck(), "vegas", &[]);
    pipe.run_until(at("5s"));
    let largest = pipe.rows.iter().map(|row| row.cwnd.0).max().expect("rows");
    let last = pipe.rows.last().expect("rows");
    assert_eq!(last.lost, Packets(0));
    assert!((largest as f64) < 3.0 * pipe_bdp(), "cwnd rose to {largest}");
    let tolerant = [("gamma", 1000.0)];
    let mut pipe = Pipe::new(bottleneck(), "vegas", &tolerant);
    pipe.run_until(at("1s"));
    assert!(pipe.rows.last().expect("rows").cwnd.0 > largest, "gamma has the last word");
}

#[test]
fn slow_start_ends_at_the_window_that_fills_the_path_without_a_queue() {
    let mut pipe = Pipe::new(bottleneck(), "vegas", &[]);
    pipe.run_until(at("5s"));
    let is_cut = |pair: &[crate::pipe::Row]| pair[1].cwnd < pair[0].cwnd;
    let cut = pipe.rows.windows(2).find(|pair| is_cut(pair)).expect("slow start ends");
    // The new cwnd is cwnd BaseRTT / RTT + 1, where RTT is the minimum of the window, before the queue is full.
    let (before, after) = (cut[0].cwnd.0 as f64, cut[1].cwnd.0 as f64);
    assert!(cut[1].value("diff_packets") > 1.0);
    let smallest = 1.0 + cut[1].value("diff_packets") / before;
    assert!((after - before / smallest - 1.0).abs() < 2.0, "from {before} to {after}");
    assert_eq!(cut[1].ssthresh, cut[1].cwnd);
}

#[test]
fn the_window_moves_by_one_per_round_trip() {
    let mut pipe = Pipe::new(bottleneck(), "vegas", &[]);
    pipe.run_until(at("10s"));
    let from = pipe.rows.last().expect("rows").cwnd.0;
    pipe.set_rate("30Mbps".parse().expect("a rate"));
    pipe.run_until(at("10500ms"));
    let gained = pipe.rows.last().expect("rows").cwnd.0 - from;
    // 500 ms are about twelve round trips of 40 ms.
    assert!((11..=12).contains(&gained), "{gained} segments");
}

#[test]
fn an_increased_path_rtt_is_mistaken_for_a_queue() {
    let cwnd_with = |rtt: Span| {
        let mut pipe = Pipe::new(bottleneck(), "vegas", &[]);
        pipe.run_until(at("10s"));
        pipe.set_rtt(rtt);
        pipe.run_until(at("14s"));
        pipe.rows.last().expect("rows").cwnd.0
    };
    let (same, longer) = (cwnd_with(Span::from_millis(40)), cwnd_with(Span::from_millis(60)));
    assert!(longer < same - 20, "{longer} and not {same}");
}

#[test]
fn a_loss_halves_the_window() {
    let mut path = bottleneck();
    path.lose.insert(3_000);
    let mut pipe = Pipe::new(path, "vegas", &[]);
    pipe.run_until(at("10s"));
    let loss = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet was dropped");
    assert_eq!(pipe.rows[loss].ssthresh.0, pipe.rows[loss - 1].cwnd.0 / 2);
}
