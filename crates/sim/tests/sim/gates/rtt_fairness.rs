//! Tests of the shares of two flows with different round-trip times.
//!
//! Loss-based algorithms: the flow with the shorter RTT is faster. RFC 9438, section 3.3: two CUBIC flows share in
//! proportion to 1 / RTT, two Reno flows in proportion to 1 / RTT^2 if losses affect both flows (deep drop-tail
//! buffers), and to 1 / RTT if losses are independent.
//!
//! BBRv1: the flow with the longer RTT is faster in deep buffers, because the queue is shared in proportion to windows.
//! Hock, Bless, Zitterbart, "Experimental evaluation of BBR congestion control", ICNP 2017; Ma, Jiang, Wang, Wang,
//! "Fairness of congestion-based congestion control", arXiv:1706.09115. In a buffer too small for that queue, the
//! longer flow has no advantage. Measurements disagree about the remaining difference, so the gate requires only that
//! it is small.

use crate::support::{bulk, run};
use thalweg_plan::plan::Buffer;
use thalweg_units::{Bytes, Rate, Span};

const SHORT: Span = Span::from_millis(10);
const LONG: Span = Span::from_millis(50);

#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    rate: Rate,
    /// Buffer in BDPs of the longer path.
    buffer_bdp: f64,
    seconds: u64,
}

/// A buffer too small for a standing queue, and windows of hundreds of segments, beyond CUBIC's Reno-friendly region.
const SHALLOW: Bottleneck = Bottleneck { rate: Rate::from_mbps(100), buffer_bdp: 0.2, seconds: 90 };

/// A deep buffer. The queue multiplies the longer round-trip time by up to five, and Reno needs half a window of round
/// trips between losses: the windows are small enough, and the time is long enough, for dozens of losses.
const DEEP: Bottleneck = Bottleneck { rate: Rate::from_mbps(10), buffer_bdp: 4.0, seconds: 500 };

/// Starts differ by up to a second, so each seed is a different order of events.
const SEEDS: [u64; 3] = [1, 2, 3];

fn short_over_long(cc: &str, shared: Bottleneck) -> [f64; 3] {
    first_over_second(cc, [SHORT, LONG], shared)
}

fn first_over_second(cc: &str, rtts: [Span; 2], shared: Bottleneck) -> [f64; 3] {
    let ratios = SEEDS.map(|seed| {
        let mut experiment = bulk(shared.rate, rtts[0], 1.0, &[cc, cc], shared.seconds);
        experiment.seed = seed;
        experiment.start_jitter_ns = Span::from_secs(1);
        experiment.flows[0].name = "first".to_owned();
        experiment.flows[1].name = "second".to_owned();
        experiment.flows[1].extra_rtt_ns = rtts[1].saturating_sub(rtts[0]);
        let bytes = shared.rate.bytes_in(LONG).0 as f64 * shared.buffer_bdp;
        experiment.forward.buffer = Buffer::Bytes { bytes: Bytes(bytes as u64) };
        let rows = run(&experiment);
        // The first fifth of the time is excluded.
        let acked = |flow: &str| {
            let settled = rows.samples.iter().filter(|row| &*row.flow == flow && row.t_us >= shared.seconds * 200_000);
            let acked: Vec<u64> = settled.map(|row| row.acked_bytes).collect();
            (acked[acked.len() - 1] - acked[0]) as f64
        };
        acked("first") / acked("second")
    });
    let [first, second] = rtts.map(Span::as_millis);
    println!(
        "rtt_fairness: {cc}, {first} ms over {second} ms, {}, buffer {} BDP: {ratios:.2?}",
        shared.rate, shared.buffer_bdp
    );
    ratios
}

fn mean(ratios: [f64; 3]) -> f64 {
    ratios.iter().sum::<f64>() / 3.0
}

/// Minimum ratio that counts as an advantage; flows with the same round-trip time differ by less.
const WIN: f64 = 1.4;

fn short_wins(ratios: [f64; 3]) -> bool {
    ratios.iter().all(|ratio| *ratio > WIN)
}

fn long_wins(ratios: [f64; 3]) -> bool {
    ratios.iter().all(|ratio| *ratio < 1.0 / WIN)
}

/// Whether neither flow has an advantage, by the geometric mean: in a shallow buffer, drops can affect only one of two
/// flows for some time.
fn none_wins(ratios: [f64; 3]) -> bool {
    let mean = ratios.iter().product::<f64>().cbrt();
    (1.0 / WIN..WIN).contains(&mean)
}

/// Whether the ratio is that of the round-trip times, with an empty queue, a full one, or anything between.
fn is_linear(ratios: [f64; 3], shared: Bottleneck) -> bool {
    let queue_ms = LONG.as_millis() as f64 * shared.buffer_bdp;
    let ratio = |queue_ms: f64| (LONG.as_millis() as f64 + queue_ms) / (SHORT.as_millis() as f64 + queue_ms);
    (ratio(queue_ms)..ratio(0.0)).contains(&mean(ratios))
}

#[test]
fn the_loss_based_flow_with_the_shorter_rtt_wins_by_more_with_reno_than_with_cubic() {
    let (reno, cubic) = (short_over_long("reno", SHALLOW), short_over_long("cubic", SHALLOW));
    assert!(short_wins(reno) && short_wins(cubic));
    assert!(is_linear(cubic, SHALLOW) && !is_linear(reno, SHALLOW) && mean(reno) > mean(cubic));
}

#[test]
fn the_loss_based_flow_with_the_shorter_rtt_wins_in_a_deep_buffer_too() {
    for cc in ["reno", "cubic"] {
        assert!(short_wins(short_over_long(cc, DEEP)));
    }
}

#[test]
fn the_bbr_flow_with_the_longer_rtt_wins_only_in_a_deep_buffer() {
    // The shallow buffer is the control of the deep one; so are the loss-based flows, of which the shorter is faster in
    // both.
    assert!(long_wins(short_over_long("bbr", DEEP)));
    assert!(none_wins(short_over_long("bbr", SHALLOW)));
}

#[test]
fn flows_with_equal_rtt_share_equally() {
    // Control: the round-trip time decides, not the order in the scenario.
    for cc in ["reno", "cubic", "bbr"] {
        for shared in [SHALLOW, DEEP] {
            assert!(none_wins(first_over_second(cc, [LONG, LONG], shared)));
        }
    }
}
