//! Tests of buffer limits and drops.

use crate::common::{self, Offer, carry, full_sized, ms, plain, rate, rng};
use thalweg_link::Sent;
use thalweg_plan::plan;
use thalweg_units::{Bytes, Packets, Span, Time};

fn bottleneck(buffer: plan::Buffer) -> plan::Link {
    plan::Link { capacity: rate(12_000_000), buffer, ..plain() }
}

fn in_bytes(bytes: u64) -> plan::Link {
    bottleneck(plan::Buffer::Bytes { bytes: Bytes(bytes) })
}

fn in_packets(packets: u64) -> plan::Link {
    bottleneck(plan::Buffer::Packets { packets: Packets(packets) })
}

#[test]
fn a_buffer_in_bytes_accepts_packets_up_to_its_last_byte() {
    // The first packet is being sent and does not occupy the buffer.
    let exact = carry(&in_bytes(3000), None, 1, &full_sized([0; 4]));
    assert_eq!(exact.sent, [Sent::Queued, Sent::Queued, Sent::Queued, Sent::Dropped]);
    let one_less = carry(&in_bytes(2999), None, 1, &full_sized([0; 4]));
    assert_eq!(one_less.sent, [Sent::Queued, Sent::Queued, Sent::Dropped, Sent::Dropped]);
}

#[test]
fn a_smaller_packet_fits_where_a_larger_one_was_dropped() {
    let offers = [1500, 1500, 1000, 999, 1].map(|size| Offer { at_ns: 0, size, extra_ns: 0 });
    let outcome = carry(&in_bytes(2500), None, 1, &offers);
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued, Sent::Queued, Sent::Dropped, Sent::Dropped]);
    let outcome = carry(&in_bytes(2499), None, 1, &offers);
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued, Sent::Dropped, Sent::Queued, Sent::Dropped]);
    assert_eq!(outcome.order(), [0, 1, 3]);
}

#[test]
fn a_buffer_in_packets_counts_them_whatever_their_size() {
    let offers = [1500, 40, 9000, 40].map(|size| Offer { at_ns: 0, size, extra_ns: 0 });
    let outcome = carry(&in_packets(2), None, 1, &offers);
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued, Sent::Queued, Sent::Dropped]);
}

#[test]
fn a_link_without_buffer_sends_one_packet_at_a_time() {
    for config in [in_bytes(0), in_packets(0)] {
        let outcome = carry(&config, None, 1, &full_sized([0, ms(1) - 1, ms(1)]));
        assert_eq!(outcome.sent, [Sent::Queued, Sent::Dropped, Sent::Queued]);
    }
}

#[test]
fn buffer_space_is_released_when_the_transmission_of_a_packet_begins() {
    let outcome = carry(&in_packets(1), None, 1, &full_sized([0, 0, ms(1) - 1, ms(1), ms(1)]));
    assert_eq!(outcome.sent, [Sent::Queued, Sent::Queued, Sent::Dropped, Sent::Queued, Sent::Dropped]);
    assert_eq!(outcome.arrivals, [(ms(1), 0), (ms(2), 1), (ms(3), 3)]);
}

#[test]
fn the_tail_is_dropped_and_the_rest_keeps_its_order() {
    let outcome = carry(&in_packets(3), None, 1, &full_sized([0; 10]));
    assert_eq!(outcome.count(Sent::Dropped), 6);
    assert_eq!(outcome.order(), [0, 1, 2, 3]);
}

#[test]
fn the_backlog_excludes_the_packet_in_transmission() {
    let mut link = common::link(&in_packets(2), None).unwrap();
    let mut rng = rng(1);
    for number in 0..4u64 {
        link.send(Time::ZERO, number, Bytes(1000 + number), Span::ZERO, &mut rng);
    }
    let stats = link.stats(Time::ZERO);
    assert_eq!((stats.offered.0, stats.dropped.0, stats.in_flight.0), (4, 1, 1));
    assert_eq!((stats.backlog_packets.0, stats.backlog_bytes.0), (2, 2003));
    assert_eq!((stats.sent_packets.0, stats.sent_bytes.0), (0, 0));

    // The first packet was sent but not polled, so it is still in flight.
    let stats = link.stats(Time(ms(1)));
    assert_eq!((stats.backlog_packets.0, stats.backlog_bytes.0), (1, 1002));
    assert_eq!((stats.sent_packets.0, stats.sent_bytes.0, stats.in_flight.0, stats.delivered.0), (1, 1000, 2, 0));
    assert_eq!(link.poll(Time(ms(1))), Some(0));
    assert_eq!(link.stats(Time(ms(1))).delivered.0, 1);
}
