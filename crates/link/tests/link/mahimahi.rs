//! Tests of the departures of packets with traces.

use crate::common::{self, Offer, carry, full_sized, ms, plain, trace};
use proptest::prelude::*;
use thalweg_link::{Link, Sent};
use thalweg_plan::plan;
use thalweg_units::{Bytes, Packets, Time};

fn traced() -> plan::Link {
    plan::Link { capacity: trace(), ..plain() }
}

fn sizes(at_ns: u64, sizes: &[u64]) -> Vec<Offer> {
    sizes.iter().map(|&size| Offer { at_ns, size, extra_ns: 0 }).collect()
}

#[test]
fn each_opportunity_takes_one_full_packet() {
    let outcome = carry(&traced(), Some(&[3, 3, 7, 10]), 1, &full_sized([0, 0, 0, 0]));
    assert_eq!(outcome.arrival_times(), [ms(3), ms(3), ms(7), ms(10)]);
}

#[test]
fn the_trace_repeats_with_its_last_number_as_period() {
    let outcome = carry(&traced(), Some(&[3, 10]), 1, &full_sized([0; 5]));
    assert_eq!(outcome.arrival_times(), [ms(3), ms(10), ms(13), ms(20), ms(23)]);
    let later = carry(&traced(), Some(&[3, 10]), 1, &full_sized([ms(1_005), ms(1_005)]));
    assert_eq!(later.arrival_times(), [ms(1_010), ms(1_013)]);
}

#[test]
fn small_packets_share_an_opportunity() {
    let outcome = carry(&traced(), Some(&[3, 10]), 1, &sizes(0, &[500, 500, 500, 40]));
    assert_eq!(outcome.arrival_times(), [ms(3), ms(3), ms(3), ms(10)]);
}

#[test]
fn a_packet_that_does_not_fit_is_continued_at_the_next_opportunity() {
    // The first opportunity carries 1000 bytes, and 500 of the second packet; the second one carries the other 1000,
    // and the third packet.
    let outcome = carry(&traced(), Some(&[3, 5, 9, 10]), 1, &sizes(0, &[1000, 1500, 500, 1500]));
    assert_eq!(outcome.arrival_times(), [ms(3), ms(5), ms(5), ms(9)]);
    let large = carry(&traced(), Some(&[3, 5, 9, 10]), 1, &sizes(0, &[4000, 500, 1]));
    assert_eq!(large.arrival_times(), [ms(9), ms(9), ms(10)]);
}

#[test]
fn unused_bytes_of_an_opportunity_expire_when_the_queue_is_empty() {
    let mut offers = sizes(0, &[100]);
    offers.extend(sizes(ms(3) + 1, &[100]));
    assert_eq!(carry(&traced(), Some(&[3, 10]), 1, &offers).arrival_times(), [ms(3), ms(10)]);
}

#[test]
fn a_packet_arriving_at_the_time_of_an_opportunity_misses_it() {
    let outcome = carry(&traced(), Some(&[0, 3, 10]), 1, &full_sized([0, ms(3), ms(10)]));
    assert_eq!(outcome.arrival_times(), [ms(3), ms(10), ms(13)]);
    // 10 ms is the end of a period and, with an opportunity at 0, the start of the next one; both opportunities have
    // passed.
    assert_eq!(outcome.order(), [0, 1, 2]);
}

#[test]
fn the_packet_at_the_head_waiting_for_an_opportunity_does_not_count_against_the_buffer() {
    let config = plan::Link { buffer: plan::Buffer::Packets { packets: Packets(1) }, ..traced() };
    let outcome = carry(&config, Some(&[3, 10]), 1, &full_sized([0, 0, 0, ms(3), ms(3)]));
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued, Sent::Dropped, Sent::Queued, Sent::Dropped]);
}

#[test]
fn capacity_counts_opportunities() {
    let link: Link<u64> = common::link(&traced(), Some(&[3, 3, 10])).unwrap();
    let bytes = |at_ns| link.capacity_bytes(Time(at_ns)).unwrap();
    assert_eq!(
        [ms(3) - 1, ms(3), ms(10) - 1, ms(10), ms(13), ms(20)].map(bytes),
        [0, 3_000, 3_000, 4_500, 7_500, 9_000].map(Bytes),
    );
}

/// Reference implementation of the capacity of a trace: a loop over every opportunity, used or not.
fn opportunity_by_opportunity(trace_ms: &[u64], offers: &[Offer]) -> Vec<u64> {
    let mut departures = Vec::new();
    let mut waiting = std::collections::VecDeque::new();
    let mut offers = offers.iter().peekable();
    let mut begin_ms = 0;
    loop {
        for at_ms in trace_ms {
            let now_ns = ms(begin_ms + at_ms);
            while let Some(offer) = offers.next_if(|offer| offer.at_ns < now_ns) {
                waiting.push_back(offer.size);
            }
            let mut room = 1500;
            while let Some(size) = waiting.front_mut().filter(|_| room > 0) {
                let used = room.min(*size);
                room -= used;
                *size -= used;
                if *size == 0 {
                    waiting.pop_front();
                    departures.push(now_ns);
                }
            }
            if waiting.is_empty() && offers.peek().is_none() {
                return departures;
            }
        }
        begin_ms += trace_ms.last().unwrap();
    }
}

proptest! {
    #[test]
    fn departure_times_match_the_opportunities(
        mut trace_ms in prop::collection::vec(0..40u64, 1..12),
        length_ms in 1..60u64,
        packets in prop::collection::vec((prop_oneof![Just(0), 0..ms(8), Just(ms(1))], prop_oneof![1..200u64, Just(1500), 1501..5000u64]), 1..60),
    ) {
        trace_ms.sort_unstable();
        trace_ms.push(trace_ms.last().unwrap() + length_ms);
        let mut at_ns = 0;
        let mut offers = Vec::new();
        for (gap_ns, size) in packets {
            at_ns += gap_ns;
            offers.push(Offer { at_ns, size, extra_ns: 0 });
        }
        let outcome = carry(&traced(), Some(&trace_ms), 1, &offers);
        prop_assert_eq!(outcome.arrival_times(), opportunity_by_opportunity(&trace_ms, &offers));
    }
}
