//! Tests of H-TCP (draft-leith-tcp-htcp-06) on an ideal path.

use crate::path::Path;
use crate::pipe::{Pipe, Row, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Rate, Span, Time};

const NO_SCALING: &[(&str, f64)] = &[("use_rtt_scaling", 0.0)];

/// Returns a path without a bottleneck, with one loss and an RTT of 100 ms, at which RTT scaling has no effect.
fn open_path() -> Path {
    let mut path = Path::new("100Gbps", "100ms", 1_000_000);
    path.lose.insert(400);
    path
}

/// Returns the first row after recovery, at which the clock of the increase function starts.
fn epoch_start(pipe: &Pipe) -> &Row {
    let loss = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet was dropped");
    pipe.rows[loss..].iter().find(|row| row.state == CaState::Open).expect("it recovers")
}

fn later(row: &Row, seconds: f64) -> Time {
    Time(row.at.0 + (seconds * 1e9) as u64)
}

/// Returns the increase function of the draft, in segments per round trip, for a backoff factor of one half.
fn increase(seconds: f64) -> f64 {
    let beyond = (seconds - 1.0).max(0.0);
    1.0 + 10.0 * beyond + 0.25 * beyond * beyond
}

/// Returns the growth of cwnd in segments per round trip, over half a second around `seconds` after recovery.
fn growth_per_round(pipe: &Pipe, seconds: f64) -> f64 {
    let start = epoch_start(pipe);
    let cwnd = |at| pipe.row_at(later(start, at)).cwnd.0 as f64;
    (cwnd(seconds + 0.25) - cwnd(seconds - 0.25)) / 5.0
}

#[test]
fn growth_equals_reno_for_one_second_after_congestion() {
    let mut pipe = Pipe::new(open_path(), "htcp", &[]);
    pipe.run_until(at("4s"));
    let start = epoch_start(&pipe);
    let gained = pipe.row_at(later(start, 0.95)).cwnd.0 - start.cwnd.0;
    assert!((8..=10).contains(&gained), "{gained} segments in nine and a half round trips");
}

#[test]
fn later_growth_follows_the_increase_function() {
    let mut pipe = Pipe::new(open_path(), "htcp", &[]);
    pipe.run_until(at("10s"));
    for seconds in [2.0, 4.0, 8.0] {
        let expected = increase(seconds);
        // Whole numbers, updated once per step.
        let alpha = pipe.row_at(later(epoch_start(&pipe), seconds)).value("alpha");
        assert!((expected - 2.0..=expected).contains(&alpha), "after {seconds} s: {alpha} and not {expected}");
        // Every step needs one additional ACK.
        let growth = growth_per_round(&pipe, seconds);
        assert!((0.85..1.0).contains(&(growth / expected)), "after {seconds} s: {growth} and not {expected}");
    }
}

#[test]
fn growth_per_round_trip_is_proportional_to_the_round_trip_time() {
    let growth = |rtt, params| {
        let mut path = Path::new("100Gbps", rtt, 1_000_000);
        path.lose.insert(400);
        let mut pipe = Pipe::new(path, "htcp", params);
        pipe.run_until(at("8s"));
        let row = pipe.row_at(later(epoch_start(&pipe), 4.0));
        row.value("alpha")
    };
    // f(4 s) is 33 per round trip.
    assert!((growth("50ms", &[]) - 16.0).abs() <= 1.0, "half at 50 ms: {}", growth("50ms", &[]));
    assert!((growth("200ms", &[]) - 66.0).abs() <= 2.0, "twice at 200 ms: {}", growth("200ms", &[]));
    for rtt in ["50ms", "200ms"] {
        let increase = growth(rtt, NO_SCALING);
        assert!((increase - 33.0).abs() <= 1.0, "unscaled at {rtt}: {increase}");
    }
}

/// Returns a connection after 60 s on a path whose bottleneck buffer, of `buffer` BDPs, overflows repeatedly.
fn bottleneck(buffer: f64) -> Pipe {
    let mut path = Path::new("20Mbps", "50ms", 0);
    path.buffer = Packets((path.bdp() * buffer) as u64);
    let mut pipe = Pipe::new(path, "htcp", &[]);
    pipe.run_until(at("60s"));
    pipe
}

/// Returns the rows directly before and after the latest reduction.
fn latest_reduction(pipe: &Pipe) -> (&Row, &Row) {
    let enters = |pair: &[Row]| pair[0].state != CaState::Recovery && pair[1].state == CaState::Recovery;
    let number = pipe.rows.windows(2).rposition(enters).expect("the buffer overflows");
    (&pipe.rows[number], &pipe.rows[number + 1])
}

#[test]
fn congestion_multiplies_cwnd_by_the_ratio_of_the_round_trip_times() {
    // Half a BDP of buffer: 50 ms without a queue, 75 ms with a full one.
    let pipe = bottleneck(0.5);
    let (before, after) = latest_reduction(&pipe);
    let factor = after.ssthresh.0 as f64 / before.cwnd.0 as f64;
    assert!((factor - 50.0 / 75.0).abs() < 0.02, "{factor}");
}

#[test]
fn the_backoff_factor_is_between_a_half_and_four_fifths() {
    for (buffer, expected) in [(0.05, 102.0 / 128.0), (3.0, 0.5)] {
        let pipe = bottleneck(buffer);
        let (_, after) = latest_reduction(&pipe);
        assert_eq!(after.value("beta"), expected, "with {buffer} BDP of buffer");
    }
}

#[test]
fn a_throughput_that_changed_by_more_than_a_fifth_resets_the_backoff() {
    let backoff_after_change = |params: &[(&str, f64)], rate: &str| {
        let mut path = Path::new("20Mbps", "50ms", 0);
        path.buffer = Packets((path.bdp() * 0.5) as u64);
        let mut pipe = Pipe::new(path, "htcp", params);
        pipe.run_until(at("30s"));
        pipe.set_rate(rate.parse::<Rate>().expect("a rate"));
        // The first congestion at the new rate ends an epoch that started at the old rate.
        let mut congestions = 0;
        while congestions < 2 {
            let state = |pipe: &Pipe| pipe.rows.last().expect("rows").state;
            let before = state(&pipe);
            pipe.step();
            congestions += u32::from(before != CaState::Recovery && state(&pipe) == CaState::Recovery);
        }
        latest_reduction(&pipe).1.value("beta")
    };
    assert_eq!(backoff_after_change(&[], "40Mbps"), 0.5);
    assert!(backoff_after_change(&[], "20Mbps") > 0.6, "the same rate");
    assert!(backoff_after_change(&[("use_bandwidth_switch", 0.0)], "40Mbps") > 0.6, "unwatched");
}

#[test]
fn an_undo_restores_the_clock_of_the_increase_function() {
    let alpha_after_loss = |is_undone: bool| {
        let mut path = open_path();
        path.lose.insert(12_000);
        let mut pipe = Pipe::new(path, "htcp", &[]);
        let reductions = |pipe: &Pipe| {
            let enters = |pair: &&[Row]| pair[0].state == CaState::Open && pair[1].state == CaState::Recovery;
            pipe.rows.windows(2).filter(enters).count()
        };
        while reductions(&pipe) < 2 {
            pipe.step();
        }
        if is_undone {
            let before = latest_reduction(&pipe).0.cwnd;
            pipe.undo(before, Packets(2));
        }
        let end = pipe.rows.last().expect("rows").at + Span::from_millis(900);
        pipe.run_until(end);
        pipe.rows.last().expect("rows").value("alpha")
    };
    assert_eq!(alpha_after_loss(false), 1.0);
    assert!(alpha_after_loss(true) > 10.0, "{}", alpha_after_loss(true));
}
