//! Tests with random losses, delays and duplicates.

use crate::common::*;
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_tcp::{ReceiverConfig, SenderConfig};
use thalweg_units::{Bytes, Rate, Span};

/// Impairments of the network, in percent of the packets of a direction, and the bound of their lateness.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    lost: u64,
    late: u64,
    twice: u64,
    lateness_us: u64,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    (0u64..30, 0u64..30, 0u64..15, 1u64..60_000).prop_map(|(lost, late, twice, lateness_us)| Trouble {
        lost,
        late,
        twice,
        lateness_us,
    })
}

fn fate(rng: &mut Xoshiro256PlusPlus, trouble: Trouble) -> Fate {
    let roll = rng.next_u64() % 100;
    let lateness = Span::from_micros(rng.next_u64() % trouble.lateness_us);
    if roll < trouble.lost {
        Fate::Drop
    } else if roll < trouble.lost + trouble.late {
        Fate::Late(lateness)
    } else if roll < trouble.lost + trouble.late + trouble.twice {
        Fate::Twice(lateness)
    } else {
        Fate::Deliver
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        name in prop::sample::select(vec!["reno", "cubic", "bbr"]),
        seed in any::<u64>(),
        forward in trouble(),
        back in trouble(),
        writes in prop::collection::vec((prop_oneof![1u64..60_000, 200_000u64..1_000_000], 0u64..300), 1..12),
        rate_mbps in 1u64..200,
        delay_ms in 0u64..60,
        sndbuf in prop::sample::select(vec![20_000u64, 100_000, 4 << 20]),
        rcvbuf in prop::sample::select(vec![10_000u64, 131_072, 6 << 20]),
    ) {
        let sender = SenderConfig { sndbuf_max: Bytes(sndbuf), ..SenderConfig::default() };
        let receiver = ReceiverConfig { rcvbuf_max: Bytes(rcvbuf), ..ReceiverConfig::default() };
        let rate = Some(Rate::from_mbps(rate_mbps));
        let mut pipe = Pipe::with(sender, receiver, controller(name), rate, ms(delay_ms));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        pipe.forward = Box::new(move |_, _| fate(&mut rng, forward));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        pipe.back = Box::new(move |_, _| fate(&mut rng, back));
        pipe.connect();
        for (size, pause_ms) in &writes {
            pipe.write(Bytes(*size));
            pipe.run_until(pipe.now + ms(*pause_ms));
        }
        let limit = pipe.now + Span::from_secs(100_000);
        pipe.run_to_end(limit);
        let total: u64 = writes.iter().map(|(size, _)| size).sum();
        prop_assert_eq!(pipe.receiver.delivered(), Bytes(total));
        prop_assert_eq!(pipe.sender.acked(), Bytes(total));

        // A retransmission carries the same bytes as the first transmission, and the segments cover the stream.
        let mut pieces = std::collections::BTreeMap::new();
        for (_, data) in pipe.data() {
            let piece = (data.offset.0, u64::from(data.len));
            prop_assert_eq!(*pieces.entry(data.seq).or_insert(piece), piece);
        }
        let mut end = 0;
        for (offset, len) in pieces.values() {
            prop_assert_eq!(*offset, end);
            end += len;
        }
        prop_assert_eq!(end, total);
        let counters = pipe.info().counters;
        prop_assert_eq!(counters.segments, pipe.data().count() as u64);
        prop_assert_eq!(counters.segments - counters.retransmits, pieces.len() as u64);
        prop_assert_eq!(pipe.info().inflight.0, 0);

        let mut edge = 0;
        for (_, ack) in pipe.ack_packets() {
            let next = pieces.get(&ack.next).map_or(total, |piece| piece.0);
            prop_assert!(next + ack.window.0 >= edge);
            edge = next + ack.window.0;
        }
    }

    #[test]
    fn the_same_seed_produces_the_same_packets(seed in any::<u64>(), forward in trouble()) {
        let run = || {
            let mut pipe = Pipe::new(controller("bbr"), Some(Rate::from_mbps(20)), ms(10));
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            pipe.forward = Box::new(move |_, _| fate(&mut rng, forward));
            pipe.connect();
            pipe.write(Bytes(100_000));
            pipe.run_until(at_ms(3_000));
            (pipe.sent, pipe.acks)
        };
        prop_assert!(run() == run());
    }
}
