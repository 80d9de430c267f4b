//! Tests invariants of random links under random sequences of calls.

use crate::common::{self, Offer, carry, full_sized, ms, plain, probability, rate, rng, run_until, steps, trace};
use proptest::prelude::*;
use rand_xoshiro::rand_core::Rng;
use thalweg_link::Sent;
use thalweg_plan::plan;
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Send(Offer),
    PollOnce,
    PollAll,
}

fn capacities() -> impl Strategy<Value = (plan::Capacity, Option<Vec<u64>>)> {
    let rates = prop_oneof![Just(0), 100_000..1_000_000_000u64];
    let phases = prop::collection::vec((1..ms(20), rates), 1..5).prop_map(|phases| {
        let mut at_ns = 0;
        let step = |(length_ns, rate_bps)| {
            at_ns += length_ns;
            (at_ns - length_ns, rate_bps)
        };
        (steps(&phases.into_iter().map(step).collect::<Vec<_>>()), None)
    });
    let traces = prop::collection::vec(0..50u64, 1..10).prop_map(|mut trace_ms| {
        trace_ms.sort_unstable();
        trace_ms.push(51);
        (trace(), Some(trace_ms))
    });
    prop_oneof![Just((plan::Capacity::Unlimited, None)), phases, traces]
}

fn queues() -> impl Strategy<Value = plan::Queue> {
    let (target_ns, interval_ns, tupdate_ns) = (Span(ms(1)), Span(ms(5)), Span(ms(2)));
    let (flows, quantum_bytes, memory_limit_bytes) = (4, Bytes(1514), Bytes(30_000));
    let ecn = false;
    prop_oneof![
        3 => Just(plan::Queue::Fifo {}),
        1 => Just(plan::Queue::Codel { target_ns, interval_ns, ecn, ce_threshold_ns: Some(target_ns) }),
        1 => Just(plan::Queue::FqCodel {
            flows, quantum_bytes, memory_limit_bytes, drop_batch: 4, target_ns, interval_ns, ecn, ce_threshold_ns: None,
        }),
        1 => Just(plan::Queue::Pie { target_ns, tupdate_ns, alpha: 32, beta: 32, ecn }),
        1 => Just(plan::Queue::FqPie {
            flows, quantum_bytes, memory_limit_bytes, target_ns, tupdate_ns, alpha: 32, beta: 32, ecn, ecn_prob: 10,
        }),
        1 => Just(plan::Queue::Red {
            min_bytes: Bytes(2000),
            max_bytes: Bytes(9000),
            avpkt_bytes: Bytes(1000),
            burst: 4,
            probability: probability(0.5),
            bandwidth_bps: Rate(10_000_000),
            ecn,
        }),
        1 => Just(plan::Queue::Fq { flow_limit: 3, quantum_bytes, initial_quantum_bytes: Bytes(3000), ce_threshold_ns: None }),
        1 => Just(plan::Queue::Dualpi2 {
            target_ns, tupdate_ns, alpha: 10.0, beta: 50.0, step_thresh_ns: target_ns, coupling_factor: 2, classic_protection: 10,
        }),
    ]
}

fn stages() -> impl Strategy<Value = (plan::Queue, Option<plan::Policer>, Option<plan::Aggregation>)> {
    let policers =
        prop::option::weighted(0.2, (0..1_000_000_000u64, 0..50_000u64, prop::bool::ANY)).prop_map(|policer| {
            policer.map(|(rate_bps, burst, after)| plan::Policer {
                rate_bps: Rate(rate_bps),
                burst_bytes: Bytes(burst),
                after,
            })
        });
    let aggregations =
        prop::option::weighted(0.2, (1..ms(10), prop::option::of(1..20_000u64))).prop_map(|aggregation| {
            aggregation.map(|(interval, max_bytes)| plan::Aggregation {
                interval_ns: Span(interval),
                max_bytes: max_bytes.map(Bytes),
            })
        });
    (queues(), policers, aggregations)
}

fn configs() -> impl Strategy<Value = (plan::Link, Option<Vec<u64>>)> {
    let buffers = prop_oneof![
        (0..20_000u64).prop_map(|bytes| plan::Buffer::Bytes { bytes: Bytes(bytes) }),
        (0..20u64).prop_map(|packets| plan::Buffer::Packets { packets: Packets(packets) }),
    ];
    let ratios = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64].prop_map(probability);
    let losses =
        prop_oneof![
            ratios().prop_map(|ratio| plan::Loss::Bernoulli { ratio }),
            (ratios(), ratios(), ratios(), ratios())
                .prop_map(|(p, r, loss_bad, loss_good)| plan::Loss::GilbertElliott { p, r, loss_bad, loss_good }),
        ];
    let spans = || prop_oneof![Just(Span::ZERO), (0..ms(30)).prop_map(Span)];
    (capacities(), buffers, losses, ratios(), ratios(), spans(), spans(), spans(), prop::bool::ANY, stages()).prop_map(
        |(
            (capacity, trace_ms),
            buffer,
            loss,
            duplicate,
            reorder,
            delay_ns,
            jitter_ns,
            reorder_delay_ns,
            allow_reordering,
            (queue, policer, aggregation),
        )| {
            let config = plan::Link {
                capacity,
                buffer,
                queue,
                loss,
                duplicate,
                delay_ns,
                jitter_ns,
                allow_reordering,
                reorder,
                reorder_delay_ns,
                policer,
                aggregation,
                ack_thinning: None,
                offloads: false,
                profile: None,
            };
            (config, trace_ms)
        },
    )
}

fn operations() -> impl Strategy<Value = Vec<(u64, Operation)>> {
    let gaps = prop_oneof![Just(0), 0..200_000u64, 0..ms(10)];
    let sends = (prop_oneof![40..1500u64, Just(1500), 1500..9000u64], prop_oneof![Just(0), Just(ms(7)), 0..ms(40)])
        .prop_map(|(size, extra_ns)| Operation::Send(Offer { at_ns: 0, size, extra_ns }));
    let operation = prop_oneof![4 => sends, 1 => Just(Operation::PollOnce), 1 => Just(Operation::PollAll)];
    prop::collection::vec((gaps, operation), 1..150)
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for_at_every_moment((config, trace_ms) in configs(), operations in operations(), seed: u64) {
        let mut link = common::link(&config, trace_ms.as_deref()).unwrap();
        let mut rng = rng(seed);
        let mut now = Time::ZERO;
        let (mut offered, mut lost, mut delivered) = (0, 0, 0);
        for (gap_ns, operation) in operations {
            now += Span(gap_ns);
            match operation {
                Operation::Send(Offer { size, extra_ns, .. }) => {
                    offered += 1;
                    lost += u64::from(link.send(now, offered, Bytes(size), Span(extra_ns), &mut rng) == Sent::Lost);
                }
                Operation::PollOnce => delivered += u64::from(link.poll(now).is_some()),
                Operation::PollAll => {
                    while link.poll(now).is_some() {
                        delivered += 1;
                    }
                    prop_assert!(link.next_wake().is_none_or(|wake| wake > now));
                }
            }
            let stats = link.stats(now);
            prop_assert!(stats.is_balanced(), "{:?}", stats);
            prop_assert_eq!((stats.offered.0, stats.lost.0, stats.delivered.0), (offered, lost, delivered));
            prop_assert_eq!(stats.backlog_packets == Packets::ZERO, stats.backlog_bytes == Bytes::ZERO);
            let is_fifo = matches!(config.queue, plan::Queue::Fifo {});
            match config.buffer {
                plan::Buffer::Bytes { bytes } => prop_assert!(!is_fifo || stats.backlog_bytes <= bytes),
                plan::Buffer::Packets { packets } => prop_assert!(stats.backlog_packets <= packets),
            }
            if let Some(capacity_bytes) = link.capacity_bytes(now) {
                prop_assert!(stats.sent_bytes <= capacity_bytes);
            }
        }
        let mut arrivals: Vec<(u64, u64)> = std::iter::from_fn(|| link.poll(now)).map(|number| (now.0, number)).collect();
        run_until(&mut link, Time::MAX, &mut arrivals);
        let stats = link.stats(Time::MAX);
        prop_assert!(stats.is_balanced());
        prop_assert_eq!(stats.delivered.0, delivered + arrivals.len() as u64);
        // The remaining packets are blocked by a rate that stays at 0.
        let stands_still = matches!(&config.capacity, plan::Capacity::Steps { steps } if steps.last().unwrap().rate_bps.0 == 0);
        prop_assert!(stands_still || stats.in_flight + stats.backlog_packets == Packets::ZERO, "{:?}", stats);
    }

    #[test]
    fn a_caller_that_polls_late_gets_the_same_packets_in_the_same_order(
        (config, trace_ms) in configs(), operations in operations(), seed: u64,
    ) {
        let mut offers = Vec::new();
        let mut at_ns = 0;
        for (gap_ns, operation) in operations {
            at_ns += gap_ns;
            if let Operation::Send(offer) = operation {
                offers.push(Offer { at_ns, ..offer });
            }
        }
        let punctual = carry(&config, trace_ms.as_deref(), seed, &offers);

        let mut link = common::link(&config, trace_ms.as_deref()).unwrap();
        let mut rng = rng(seed);
        for (number, offer) in offers.iter().enumerate() {
            let (size, extra) = (Bytes(offer.size), Span(offer.extra_ns));
            let sent = link.send(Time(offer.at_ns), number as u64, size, extra, &mut rng);
            prop_assert_eq!(sent, punctual.sent[number]);
        }
        let late: Vec<u64> = std::iter::from_fn(|| link.poll(Time::MAX)).collect();
        prop_assert_eq!(late, punctual.order());
    }
}

/// Returns a link with all features that draw from the caller's random number generator.
fn rough() -> plan::Link {
    plan::Link {
        capacity: rate(12_000_000),
        buffer: plan::Buffer::Packets { packets: Packets(20) },
        loss: plan::Loss::GilbertElliott {
            p: probability(0.05),
            r: probability(0.3),
            loss_bad: probability(0.8),
            loss_good: probability(0.01),
        },
        duplicate: probability(0.1),
        delay_ns: Span(ms(10)),
        jitter_ns: Span(ms(5)),
        reorder: probability(0.1),
        reorder_delay_ns: Span(ms(5)),
        ..plain()
    }
}

#[test]
fn the_seed_decides_everything() {
    let offers = full_sized((0..2_000).map(|number| number * 900_000));
    assert_eq!(carry(&rough(), None, 1, &offers), carry(&rough(), None, 1, &offers));
    let (first, second) = (carry(&rough(), None, 1, &offers), carry(&rough(), None, 2, &offers));
    assert_ne!(first.sent, second.sent);
    assert_ne!(first.arrivals, second.arrivals);
}

#[test]
fn a_smaller_buffer_does_not_shift_the_random_sequence() {
    let offers = full_sized((0..2_000).map(|number| number * 900_000));
    let small = plan::Link { buffer: plan::Buffer::Packets { packets: Packets(1) }, ..rough() };
    let (large, small) = (carry(&rough(), None, 1, &offers), carry(&small, None, 1, &offers));
    let lost = |outcome: &common::Outcome| outcome.sent.iter().map(|sent| *sent == Sent::Lost).collect::<Vec<_>>();
    assert!(small.count(Sent::Dropped) > large.count(Sent::Dropped));
    assert_eq!(lost(&small), lost(&large));
}

#[test]
fn a_link_draws_random_numbers_only_for_enabled_features() {
    let draws = |config: &plan::Link| {
        let mut link = common::link(config, None).unwrap();
        let mut used = rng(1);
        for number in 0..10u64 {
            link.send(Time(number), number, Bytes(1500), Span::ZERO, &mut used);
        }
        let mut fresh = rng(1);
        (0..100)
            .find(|_| {
                fresh == used || {
                    fresh.next_u64();
                    false
                }
            })
            .unwrap()
    };
    let rough = rough();
    let loss_off = plan::Loss::GilbertElliott {
        p: Probability::NEVER,
        r: Probability::ALWAYS,
        loss_bad: Probability::ALWAYS,
        loss_good: Probability::NEVER,
    };
    assert_eq!(draws(&plan::Link { capacity: rate(1_000), reorder_delay_ns: Span(ms(1)), ..plain() }), 0);
    assert_eq!(draws(&plan::Link { loss: loss_off, ..plain() }), 0);
    assert_eq!(draws(&plan::Link { loss: plan::Loss::Bernoulli { ratio: Probability::ALWAYS }, ..plain() }), 10);
    assert_eq!(draws(&plan::Link { loss: rough.loss, ..plain() }), 20);
    assert_eq!(draws(&plan::Link { jitter_ns: Span(1), ..plain() }), 10);
    assert_eq!(draws(&plan::Link { reorder: probability(0.5), ..plain() }), 10);
    assert_eq!(draws(&plan::Link { duplicate: probability(0.5), ..plain() }), 10);
    // 2 draws for loss, 1 for duplication, and 2 each for jitter and holding back, for the packet and for its copy.
    assert_eq!(draws(&rough), 70);
}
