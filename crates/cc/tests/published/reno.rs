//! Tests of Reno (RFC 5681) on an ideal path.

use crate::path::Path;
use crate::pipe::{Pipe, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

/// Returns a path without a bottleneck, so that only the controller determines the window.
fn open_path() -> Path {
    Path::new("100Gbps", "100ms", 1_000_000)
}

/// Returns cwnd directly after each of the first round trips. The handshake takes one; packets of one round arrive
/// within 1 ms.
fn cwnd_per_round(pipe: &Pipe, rounds: u64) -> Vec<u64> {
    (2..rounds + 2).map(|round| pipe.row_at(Time(round * 100_000_000 + 50_000_000)).cwnd.0).collect()
}

#[test]
fn slow_start_doubles_cwnd_every_round_trip() {
    let mut pipe = Pipe::new(open_path(), "reno", &[]);
    pipe.run_until(at("650ms"));
    assert_eq!(cwnd_per_round(&pipe, 5), [20, 40, 80, 160, 320]);
}

#[test]
fn an_ack_of_many_segments_raises_cwnd_to_ssthresh_and_the_rest_counts_as_avoidance() {
    let mut path = open_path();
    path.ack_grid = Span::from_millis(50);
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.window.ssthresh = Packets(16);
    pipe.run_until(at("600ms"));
    // Of the first 10 segments, 6 raise cwnd to ssthresh and 4 count towards 16; then steps take 16, 17 and so on, with
    // 4 carried over.
    let cwnd: Vec<u64> = pipe.rows.iter().map(|row| row.cwnd.0).collect();
    assert_eq!(cwnd[..3], [16, 17, 18]);
}

#[test]
fn after_slow_start_cwnd_grows_by_one_per_round_trip() {
    let mut pipe = Pipe::new(open_path(), "reno", &[]);
    pipe.window.ssthresh = Packets(16);
    pipe.run_until(at("1s"));
    // In the round in which ssthresh is reached, the remainder is less than one step.
    assert_eq!(cwnd_per_round(&pipe, 6), [16, 17, 18, 19, 20, 21]);
}

#[test]
fn a_loss_halves_cwnd_and_growth_continues_by_one_per_round_trip() {
    let mut path = open_path();
    path.lose.insert(200);
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.run_until(at("2s"));
    let loss = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet was dropped");
    let (before, after) = (&pipe.rows[loss - 1], &pipe.rows[loss]);
    assert_eq!(after.cwnd.0, before.cwnd.0 / 2);
    let open = pipe.rows[loss..].iter().find(|row| row.state == CaState::Open).expect("it recovers");
    let later = pipe.row_at(Time(open.at.0 + 550_000_000));
    assert_eq!(later.cwnd.0, after.cwnd.0 + 5);
}

#[test]
fn a_timeout_halves_ssthresh_and_starts_over_with_one() {
    let mut path = open_path();
    // Drops the complete third round, so that no later packet reveals the loss.
    path.lose = (30..70).collect();
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.run_until(at("3s"));
    let first = pipe.rows.iter().find(|row| row.state == CaState::Loss).expect("nothing is heard of the round");
    assert_eq!((first.ssthresh, first.cwnd), (Packets(20), Packets(2)));
    let last = pipe.rows.last().expect("rows");
    assert_eq!(last.state, CaState::Open);
    assert!(last.cwnd > Packets(20) && last.cwnd < Packets(40), "{last:?}");
}

#[test]
fn ssthresh_is_never_below_two() {
    let mut path = open_path();
    path.lose = (0..14).collect();
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.run_until(at("20s"));
    let least = pipe.rows.iter().map(|row| row.ssthresh).min();
    assert_eq!(least, Some(Packets(2)));
}

#[test]
fn an_undo_restores_the_previous_cwnd() {
    let mut path = open_path();
    path.lose.insert(200);
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.run_until(at("650ms"));
    let loss = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet was dropped");
    let before = pipe.rows[loss - 1].cwnd;
    pipe.undo(before, Packets::MAX);
    assert_eq!((pipe.window.cwnd, pipe.window.ssthresh), (before, Packets::MAX));
}

#[test]
fn cwnd_grows_to_at_most_twice_the_flight_of_an_application_limited_sender() {
    let mut path = open_path();
    path.bursts = Some((Packets(8), "150ms".parse().expect("a time")));
    let mut pipe = Pipe::new(path, "reno", &[]);
    pipe.run_until(at("3s"));
    assert_eq!(pipe.window.cwnd, Packets(16));
}
