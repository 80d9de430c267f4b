//! Tests of random loss and duplication.
//!
//! Ratios are compared with a tolerance of at least four standard deviations, for fixed seeds.

use crate::common::{Outcome, carry, full_sized, ms, plain, probability, rate};
use thalweg_link::Sent;
use thalweg_plan::plan;
use thalweg_units::{Bytes, Packets, Probability};

const PACKETS: usize = 200_000;

fn lossy(loss: plan::Loss, seed: u64) -> Outcome {
    carry(&plan::Link { loss, ..plain() }, None, seed, &full_sized(0..PACKETS as u64))
}

fn bernoulli(ratio: f64) -> plan::Loss {
    plan::Loss::Bernoulli { ratio: probability(ratio) }
}

fn gilbert_elliott(p: f64, r: f64, loss_bad: f64, loss_good: f64) -> plan::Loss {
    let [p, r, loss_bad, loss_good] = [p, r, loss_bad, loss_good].map(probability);
    plan::Loss::GilbertElliott { p, r, loss_bad, loss_good }
}

fn bursts(outcome: &Outcome) -> Vec<usize> {
    let runs = outcome.sent.chunk_by(|a, b| a == b);
    runs.filter(|run| run[0] == Sent::Lost).map(<[Sent]>::len).collect()
}

fn mean(values: &[usize]) -> f64 {
    values.iter().sum::<usize>() as f64 / values.len() as f64
}

fn loss_ratio(outcome: &Outcome) -> f64 {
    outcome.count(Sent::Lost) as f64 / PACKETS as f64
}

#[test]
fn bernoulli_losses_have_the_configured_ratio_and_are_independent() {
    let ratio = 0.1;
    for seed in 1..4 {
        let outcome = lossy(bernoulli(ratio), seed);
        let deviation = (ratio * (1.0 - ratio) / PACKETS as f64).sqrt();
        assert!((loss_ratio(&outcome) - ratio).abs() < 4.0 * deviation, "{}", loss_ratio(&outcome));
        // The lengths of bursts of independent losses are geometric: mean 1 / (1 - ratio), standard deviation
        // sqrt(ratio) / (1 - ratio).
        let bursts = bursts(&outcome);
        let deviation = ratio.sqrt() / (1.0 - ratio) / (bursts.len() as f64).sqrt();
        assert!((mean(&bursts) - 1.0 / (1.0 - ratio)).abs() < 4.0 * deviation, "{}", mean(&bursts));
    }
}

#[test]
fn ratio_one_loses_everything_and_ratio_zero_nothing() {
    assert_eq!(lossy(bernoulli(1.0), 1).count(Sent::Lost), PACKETS);
    assert_eq!(lossy(bernoulli(0.0), 1).count(Sent::Lost), 0);
}

#[test]
fn gilbert_elliott_bursts_last_one_over_r_packets() {
    let (p, r): (f64, f64) = (0.01, 0.2);
    for seed in 1..4 {
        let outcome = lossy(gilbert_elliott(p, r, 1.0, 0.0), seed);
        let bursts = bursts(&outcome);
        let deviation = (1.0 - r).sqrt() / r / (bursts.len() as f64).sqrt();
        assert!((mean(&bursts) - 1.0 / r).abs() < 4.0 * deviation, "{}", mean(&bursts));
        // One burst per 1/p + 1/r packets; the lengths of periods in both states are geometric.
        let cycles = PACKETS as f64 / (1.0 / p + 1.0 / r);
        let ratio = p / (p + r);
        let deviation = ratio * (1.0 - ratio) * ((1.0 - p + 1.0 - r) / cycles).sqrt();
        assert!((loss_ratio(&outcome) - ratio).abs() < 4.0 * deviation, "{}", loss_ratio(&outcome));
    }
}

#[test]
fn gilbert_elliott_loses_in_each_state_by_its_own_ratio() {
    // The bad state is never left.
    assert!((loss_ratio(&lossy(gilbert_elliott(1.0, 0.0, 0.3, 0.0), 1)) - 0.3).abs() < 0.005);
    // The bad state is never entered.
    assert!((loss_ratio(&lossy(gilbert_elliott(0.0, 1.0, 1.0, 0.05), 1)) - 0.05).abs() < 0.002);
}

#[test]
fn the_state_changes_before_the_packet_it_applies_to() {
    let outcome = lossy(gilbert_elliott(1.0, 1.0, 1.0, 0.0), 1);
    assert_eq!(outcome.sent[..4], [Sent::Lost, Sent::Queued, Sent::Lost, Sent::Queued]);
}

#[test]
fn lost_packets_do_not_occupy_the_queue() {
    let config = plan::Link {
        capacity: rate(12_000_000),
        buffer: plan::Buffer::Packets { packets: Packets(1) },
        loss: gilbert_elliott(1.0, 1.0, 1.0, 0.0),
        ..plain()
    };
    let outcome = carry(&config, None, 1, &full_sized([0; 6]));
    assert_eq!(outcome.sent, [Sent::Lost, Sent::Queued, Sent::Lost, Sent::Queued, Sent::Lost, Sent::Dropped]);
}

#[test]
fn a_duplicate_follows_its_original_through_the_bottleneck() {
    let config = plan::Link { capacity: rate(12_000_000), duplicate: Probability::ALWAYS, ..plain() };
    let outcome = carry(&config, None, 1, &full_sized([0, 0]));
    assert_eq!(outcome.arrivals, [(ms(1), 0), (ms(2), 0), (ms(3), 1), (ms(4), 1)]);
}

#[test]
fn a_duplicate_may_be_dropped_when_its_original_was_not() {
    let config = plan::Link {
        capacity: rate(12_000_000),
        buffer: plan::Buffer::Bytes { bytes: Bytes(1500) },
        duplicate: Probability::ALWAYS,
        ..plain()
    };
    let outcome = carry(&config, None, 1, &full_sized([0, ms(1)]));
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued]);
    // At 1 ms the transmission of the first copy starts; the second packet fills the queue, and its copy is dropped.
    assert_eq!(outcome.order(), [0, 0, 1]);
}

#[test]
fn duplicates_pass_an_unlimited_link_without_a_buffer() {
    let buffer = plan::Buffer::Packets { packets: Packets::ZERO };
    let config = plan::Link { buffer, duplicate: Probability::ALWAYS, ..plain() };
    assert_eq!(carry(&config, None, 1, &full_sized([5])).arrivals, [(5, 0), (5, 0)]);
}

#[test]
fn duplication_duplicates_the_configured_ratio_of_packets() {
    let config = plan::Link { duplicate: probability(0.25), ..plain() };
    let copies = carry(&config, None, 1, &full_sized(0..PACKETS as u64)).arrivals.len() - PACKETS;
    let deviation = (0.25 * 0.75 / PACKETS as f64).sqrt();
    assert!((copies as f64 / PACKETS as f64 - 0.25).abs() < 4.0 * deviation, "{copies}");
}
