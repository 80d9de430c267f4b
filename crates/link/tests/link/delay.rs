//! Tests of delay, jitter, held-back packets and flows with extra delay.

use crate::common::{self, Offer, carry, full_sized, ms, plain, probability, rate};
use thalweg_link::{Link, Sent};
use thalweg_plan::plan;
use thalweg_units::{Bytes, Probability, Span, Time};

const PACKETS: u64 = 50_000;

fn spaced(gap_ns: u64) -> Vec<Offer> {
    full_sized((0..PACKETS).map(|number| number * gap_ns))
}

#[test]
fn jitter_is_uniform_for_widely_spaced_packets() {
    let config = plan::Link { delay_ns: Span(ms(20)), jitter_ns: Span(ms(4)), ..plain() };
    let offers = spaced(ms(5));
    let outcome = carry(&config, None, 1, &offers);
    let delays: Vec<u64> = outcome.arrivals.iter().zip(&offers).map(|((at, _), offer)| at - offer.at_ns).collect();
    let (least, most) = (*delays.iter().min().unwrap(), *delays.iter().max().unwrap());
    assert!(least >= ms(20) && most <= ms(24), "{least} {most}");
    // The outermost of 50 000 uniform values are within a thousandth of the ends of the range, except with a
    // probability below 10^-21.
    assert!(least < ms(20) + 4_000 && most > ms(24) - 4_000, "{least} {most}");
    let mean_ns = delays.iter().sum::<u64>() as f64 / PACKETS as f64;
    let deviation_ns = ms(4) as f64 / 12f64.sqrt() / (PACKETS as f64).sqrt();
    assert!((mean_ns - ms(22) as f64).abs() < 4.0 * deviation_ns, "{mean_ns}");
}

#[test]
fn jitter_keeps_the_order_of_closely_spaced_packets() {
    let config = plan::Link { delay_ns: Span(ms(20)), jitter_ns: Span(ms(4)), ..plain() };
    let offers = spaced(10_000);
    let outcome = carry(&config, None, 1, &offers);
    assert!(outcome.order().into_iter().eq(0..PACKETS));
    for ((at_ns, _), offer) in outcome.arrivals.iter().zip(&offers) {
        assert!((ms(20)..=ms(24)).contains(&(at_ns - offer.at_ns)));
    }
}

#[test]
fn reordering_jitter_delivers_every_packet_at_its_own_time() {
    let config = plan::Link { delay_ns: Span(ms(20)), jitter_ns: Span(ms(4)), allow_reordering: true, ..plain() };
    let offers = spaced(10_000);
    let outcome = carry(&config, None, 1, &offers);
    let mut order: Vec<u64> = outcome.order().into_iter().collect();
    assert!(order.windows(2).any(|pair| pair[0] > pair[1]), "nothing was reordered");
    let delays: Vec<u64> = outcome.arrivals.iter().map(|(at, number)| at - offers[*number as usize].at_ns).collect();
    assert!(delays.iter().all(|delay| (ms(20)..=ms(24)).contains(delay)));
    // Without reordering, packets 10 us apart would be delayed by the latest of 400: nearly 24 ms for each.
    let mean_ns = delays.iter().sum::<u64>() as f64 / PACKETS as f64;
    assert!((mean_ns - ms(22) as f64).abs() < 50_000.0, "{mean_ns}");
    order.sort_unstable();
    assert!(order.into_iter().eq(0..PACKETS), "every packet arrives once");
}

#[test]
fn a_late_poll_reports_the_arrival_time_of_each_packet() {
    let config = plan::Link { capacity: rate(12_000_000), delay_ns: Span(ms(20)), ..plain() };
    let mut link = common::link(&config, None).expect("a configuration that can be");
    for number in 0..3 {
        assert_eq!(link.send(Time::ZERO, number, Bytes(1500), Span::ZERO, &mut common::rng(1)), Sent::Queued);
    }
    let late = Time(ms(50));
    let arrivals: Vec<_> = std::iter::from_fn(|| link.poll_due(late)).map(|(at, number)| (at.0, number)).collect();
    assert_eq!(arrivals, [(ms(21), 0), (ms(22), 1), (ms(23), 2)]);
    assert_eq!(link.stats(late).delivered.0, 3);
}

#[test]
fn a_held_back_packet_arrives_later_by_exactly_the_reorder_delay() {
    let config =
        plan::Link { delay_ns: Span(ms(20)), reorder: Probability::ALWAYS, reorder_delay_ns: Span(ms(3)), ..plain() };
    assert_eq!(carry(&config, None, 1, &full_sized([0, ms(1)])).arrival_times(), [ms(23), ms(24)]);
}

#[test]
fn packets_overtaking_a_held_back_packet_stay_in_order() {
    let config =
        plan::Link { delay_ns: Span(ms(20)), reorder: probability(0.1), reorder_delay_ns: Span(ms(2)), ..plain() };
    let outcome = carry(&config, None, 1, &spaced(ms(1)));
    let is_held = |&(at_ns, number): &(u64, u64)| at_ns == ms(number) + ms(22);
    let (held, prompt): (Vec<_>, Vec<_>) = outcome.arrivals.iter().partition(|arrival| is_held(arrival));
    let deviation = (0.1 * 0.9 / PACKETS as f64).sqrt();
    assert!((held.len() as f64 / PACKETS as f64 - 0.1).abs() < 4.0 * deviation, "{}", held.len());
    assert!(prompt.iter().all(|(at_ns, number)| *at_ns == ms(*number) + ms(20)));
    assert!(held.is_sorted() && prompt.is_sorted());
    // The second packet after a held-back one arrives at the same instant, and was inserted later.
    let first = held[0].1;
    let place = |number| outcome.order().iter().position(|&other| other == number).unwrap();
    assert!(place(first + 1) < place(first) && place(first) < place(first + 2));
}

#[test]
fn without_reordering_no_packet_overtakes() {
    let config = plan::Link { delay_ns: Span(ms(20)), reorder_delay_ns: Span(ms(2)), ..plain() };
    assert!(carry(&config, None, 1, &spaced(ms(1))).order().is_sorted());
}

#[test]
fn a_reorder_delay_of_zero_changes_nothing() {
    let plain = plan::Link { delay_ns: Span(ms(20)), ..plain() };
    let config = plan::Link { reorder: probability(0.5), ..plain.clone() };
    assert_eq!(carry(&config, None, 1, &spaced(1_000)), carry(&plain, None, 1, &spaced(1_000)));
}

#[test]
fn flows_with_extra_delay_arrive_later_and_in_order_within_each_flow() {
    let config = plan::Link { capacity: rate(12_000_000), delay_ns: Span(ms(10)), jitter_ns: Span(500_000), ..plain() };
    let extra_ns = [0, ms(5), ms(30)];
    let offers: Vec<Offer> =
        (0..3_000).map(|n| Offer { at_ns: n as u64 * 500, size: 1500, extra_ns: extra_ns[n % 3] }).collect();
    let outcome = carry(&config, None, 1, &offers);
    assert_eq!(outcome.arrivals.len(), offers.len());
    assert!(outcome.arrivals.is_sorted_by_key(|(at_ns, _)| *at_ns));
    for flow in 0..3 {
        let of_flow: Vec<(u64, u64)> = outcome.arrivals.iter().copied().filter(|(_, n)| n % 3 == flow).collect();
        assert!(of_flow.is_sorted_by_key(|(_, number)| *number));
        for (at_ns, number) in of_flow {
            let earliest = ms(number + 1) + ms(10) + extra_ns[flow as usize];
            assert!((earliest..=earliest + 500_000).contains(&at_ns));
        }
    }
}

#[test]
fn extra_delay_is_added_after_the_common_order_of_all_flows() {
    let config = plan::Link { delay_ns: Span(ms(10)), jitter_ns: Span(ms(4)), ..plain() };
    let extra_ns = |number: u64| number % 2 * ms(5);
    let offers: Vec<Offer> =
        (0..1_000).map(|n| Offer { at_ns: n * 10_000, size: 1500, extra_ns: extra_ns(n) }).collect();
    let mut due: Vec<(u64, u64)> =
        carry(&config, None, 1, &offers).arrivals.iter().map(|(at_ns, n)| (*n, at_ns - extra_ns(*n))).collect();
    due.sort_unstable();
    assert!(due.is_sorted_by_key(|(_, due_ns)| *due_ns));
}

#[test]
fn simultaneous_arrivals_keep_the_order_of_departure() {
    let offers = [(0, ms(3)), (ms(1), ms(2)), (ms(1), 0), (ms(3), 0), (ms(3), 0)].map(|(at_ns, extra_ns)| Offer {
        at_ns,
        size: 1500,
        extra_ns,
    });
    assert_eq!(
        carry(&plain(), None, 1, &offers).arrivals,
        [(ms(1), 2), (ms(3), 0), (ms(3), 1), (ms(3), 3), (ms(3), 4)]
    );
}

#[test]
fn one_wakeup_is_scheduled_per_packet_not_per_departure() {
    let config = plan::Link { capacity: rate(12_000_000), delay_ns: Span(ms(20)), ..plain() };
    let mut link = common::link(&config, None).unwrap();
    let mut rng = common::rng(1);
    for number in 0..100u64 {
        assert_eq!(link.send(Time::ZERO, number, Bytes(1500), Span::ZERO, &mut rng), Sent::Queued);
    }
    let mut wakes = 0;
    while let Some(wake) = link.next_wake() {
        wakes += 1;
        while link.poll(wake).is_some() {}
    }
    assert_eq!(wakes, 100);
}

#[test]
#[should_panic(expected = "time went back from 2ms to 1ms")]
fn time_that_moves_backwards_is_rejected() {
    let mut link: Link<u64> = common::link(&plain(), None).unwrap();
    link.poll(Time(ms(2)));
    link.poll(Time(ms(1)));
}

#[test]
fn a_merged_packet_that_arrives_before_its_end_is_sent_does_not_stop_the_clock() {
    // 60 kB at 10 Mbit/s take 48 ms; their first 1500 bytes take 1.2 ms.
    let config = plan::Link { capacity: rate(10_000_000), offloads: true, delay_ns: Span(ms(1)), ..plain() };
    let mut link = common::link(&config, None).unwrap();
    let mut rng = common::rng(1);
    for number in 0..2 {
        link.send(Time::ZERO, number, Bytes(60_000), Span::ZERO, &mut rng);
    }
    let mut arrivals = Vec::new();
    let mut now = Time::ZERO;
    while let Some(wake) = link.next_wake() {
        assert!(wake > now, "time goes on: {wake} after {now}");
        now = wake;
        arrivals.extend(std::iter::from_fn(|| link.poll_due(now)).map(|(at, number)| (at.0, number)));
    }
    assert_eq!(arrivals, [(2_200_000, 0), (50_200_000, 1)]);
}
