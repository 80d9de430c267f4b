//! Tests of the departures of packets at given rates.

use crate::common::{self, Offer, carry, full_sized, ms, plain, rate, rng, steps};
use proptest::prelude::*;
use thalweg_link::Link;
use thalweg_plan::plan;
use thalweg_units::{Bytes, Span, Time};

#[test]
fn a_packet_leaves_after_its_size_over_the_rate() {
    let config = plan::Link { capacity: rate(40_000_000), ..plain() };
    assert_eq!(carry(&config, None, 1, &full_sized([ms(5)])).arrival_times(), [ms(5) + 300_000]);
}

#[test]
fn propagation_follows_serialisation() {
    let config = plan::Link { capacity: rate(40_000_000), delay_ns: Span(ms(20)), ..plain() };
    let outcome = carry(&config, None, 1, &full_sized([0, 0]));
    assert_eq!(outcome.arrival_times(), [ms(20) + 300_000, ms(20) + 600_000]);
}

#[test]
fn an_unlimited_link_only_delays() {
    let config = plan::Link { buffer: plan::Buffer::Bytes { bytes: Bytes::ZERO }, delay_ns: Span(ms(20)), ..plain() };
    let outcome = carry(&config, None, 1, &full_sized([7, 7, 7, 8]));
    assert_eq!(outcome.arrival_times(), [ms(20) + 7, ms(20) + 7, ms(20) + 7, ms(20) + 8]);
    assert_eq!(outcome.order(), [0, 1, 2, 3]);
}

/// 12 000 bits at 7 Mbit/s are 1 714 285.714... ns: rounding each up would add up to a delay of 0.3 ms.
#[test]
fn rounding_errors_do_not_accumulate_over_a_million_packets() {
    const PACKETS: u64 = 1_000_000;
    let config = plan::Link { capacity: rate(7_000_000), ..plain() };
    let mut link = common::link(&config, None).unwrap();
    for number in 0..PACKETS {
        link.send(Time::ZERO, number, Bytes(1500), Span::ZERO, &mut rng(1));
    }
    let mut latest = Time::ZERO;
    for number in 0..PACKETS {
        latest = link.next_wake().unwrap();
        assert_eq!(link.poll(latest), Some(number));
        assert_eq!(latest.0, ((number + 1) * 12_000 * 1_000_000_000).div_ceil(7_000_000));
    }
    assert_eq!(latest, Time(1_714_285_714_286));
    assert_eq!(link.next_wake(), None);
}

#[test]
fn idle_time_does_not_accumulate_capacity() {
    let config = plan::Link { capacity: rate(7_000_000), ..plain() };
    let outcome = carry(&config, None, 1, &full_sized([0, ms(100)]));
    assert_eq!(outcome.arrival_times(), [1_714_286, ms(100) + 1_714_286]);
}

#[test]
fn a_step_within_a_packet_sends_the_rest_at_the_new_rate() {
    // Of 12 000 bits, 4 000 take 1 ms at 4 Mbit/s, then 8 000 take 8 ms at 1 Mbit/s.
    let config = plan::Link { capacity: steps(&[(0, 4_000_000), (ms(1), 1_000_000)]), ..plain() };
    assert_eq!(carry(&config, None, 1, &full_sized([0])).arrival_times(), [ms(9)]);
}

#[test]
fn rate_zero_stops_the_link_until_the_next_step() {
    let capacity = steps(&[(0, 12_000_000), (ms(2), 0), (ms(10), 12_000_000)]);
    let config = plan::Link { capacity, ..plain() };
    let outcome = carry(&config, None, 1, &full_sized([500_000, 500_000, ms(5)]));
    assert_eq!(outcome.arrival_times(), [1_500_000, ms(10) + 500_000, ms(11) + 500_000]);
}

#[test]
fn a_permanent_rate_of_zero_keeps_packets_and_schedules_no_wakeup() {
    let config = plan::Link { capacity: steps(&[(0, 12_000_000), (ms(1), 0)]), ..plain() };
    let mut link = common::link(&config, None).unwrap();
    for number in 0..3 {
        link.send(Time::ZERO, number, Bytes(1500), Span::ZERO, &mut rng(1));
    }
    assert_eq!(link.poll(Time(ms(1))), Some(0));
    assert_eq!(link.next_wake(), None);
    let stats = link.stats(Time(ms(3_600_000)));
    assert_eq!((stats.in_flight.0, stats.backlog_packets.0), (1, 1));
    assert!(stats.is_balanced());
}

#[test]
fn capacity_is_the_rate_over_time() {
    let capacity = steps(&[(0, 8_000_000), (ms(10), 0), (ms(20), 16_000_000)]);
    let link: Link<u64> = common::link(&plan::Link { capacity, ..plain() }, None).unwrap();
    let bytes = |at_ns| link.capacity_bytes(Time(at_ns)).unwrap().0;
    assert_eq!([0, ms(4), ms(10), ms(15), ms(20), ms(21)].map(bytes), [0, 4_000, 10_000, 10_000, 10_000, 12_000]);
    let unlimited: Link<u64> = common::link(&plain(), None).unwrap();
    assert_eq!(unlimited.capacity_bytes(Time(ms(1))), None);
}

/// Returns departures by the definition of the fluid model, over all packets. The work done until `t`, in 1e-9 bits, is
/// the integral of the rate. Packet k ends at the first nanosecond at which the work of packets 0 to k is done; work on
/// a packet never starts before its arrival.
fn fluid(phases: &[(u64, u64)], offers: &[Offer]) -> Vec<u64> {
    let end_of = |index: usize| phases.get(index + 1).map_or(u64::MAX, |next: &(u64, u64)| next.0);
    let done_until = |t: u64| -> u128 {
        let work = |(index, &(at, rate)): (usize, &(u64, u64))| {
            u128::from(rate) * u128::from(t.min(end_of(index)).saturating_sub(at))
        };
        phases.iter().enumerate().map(work).sum()
    };
    let first_with = |target: u128| -> Option<u64> {
        (0..phases.len()).find_map(|index| {
            let (at, rate) = phases[index];
            let missing = target.checked_sub(done_until(at)).filter(|missing| *missing > 0)?;
            if rate == 0 {
                return None;
            }
            let t = u128::from(at) + missing.div_ceil(u128::from(rate));
            (t <= u128::from(end_of(index))).then_some(t as u64)
        })
    };
    let mut target = 0;
    let mut departures = Vec::new();
    for offer in offers {
        target = done_until(offer.at_ns).max(target) + u128::from(offer.size) * 8_000_000_000;
        departures.extend(first_with(target));
    }
    departures
}

proptest! {
    #[test]
    fn departure_times_match_the_fluid_model(
        phases in prop::collection::vec(
            (1..ms(3), prop_oneof![Just(0), 1_000..50_000_000u64, Just(100_000_000_007)]), 1..6),
        packets in prop::collection::vec((0..ms(1), prop_oneof![1..100u64, 1400..1501u64]), 1..60),
    ) {
        let mut at_ns = 0;
        let mut steps_ns = Vec::new();
        for (length_ns, rate_bps) in phases {
            steps_ns.push((at_ns, rate_bps));
            at_ns += length_ns;
        }
        let mut now_ns = 0;
        let mut offers = Vec::new();
        for (gap_ns, size) in packets {
            now_ns += gap_ns;
            offers.push(Offer { at_ns: now_ns, size, extra_ns: 0 });
        }
        let config = plan::Link { capacity: steps(&steps_ns), ..plain() };
        prop_assert_eq!(carry(&config, None, 1, &offers).arrival_times(), fluid(&steps_ns, &offers));
    }
}
