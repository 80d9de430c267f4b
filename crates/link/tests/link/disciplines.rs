//! Compares queue disciplines and other stages with their specifications, using open-loop traffic, which does not react
//! to drops and marks.

use crate::common::{self, ms, plain, rate, rng};
use std::collections::BTreeMap;
use thalweg_link::{Link, Packet, Sent, Stats};
use thalweg_plan::plan::{self, Queue};
use thalweg_units::{Bytes, Ecn, Packets, Probability, Rate, Span, Time};

/// Link rate of [`bottleneck`]: 1500 bytes take 1 ms.
const RATE: u64 = 12_000_000;

#[derive(Clone, Copy, Debug)]
struct Segment {
    flow: u64,
    ecn: Ecn,
    sent_at: Time,
}

impl Packet for Segment {
    fn flow(&self) -> u64 {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

fn bottleneck(queue: Queue, packets: u64) -> plan::Link {
    plan::Link { capacity: rate(RATE), buffer: plan::Buffer::Packets { packets: Packets(packets) }, queue, ..plain() }
}

fn codel(ecn: bool) -> Queue {
    Queue::Codel { target_ns: Span(ms(5)), interval_ns: Span(ms(100)), ecn, ce_threshold_ns: None }
}

fn fq_codel() -> Queue {
    Queue::FqCodel {
        flows: 1024,
        quantum_bytes: Bytes(1514),
        memory_limit_bytes: Bytes(32 << 20),
        drop_batch: 64,
        target_ns: Span(ms(5)),
        interval_ns: Span(ms(100)),
        ecn: true,
        ce_threshold_ns: None,
    }
}

fn pie(ecn: bool) -> Queue {
    Queue::Pie { target_ns: Span(ms(15)), tupdate_ns: Span(ms(15)), alpha: 2, beta: 20, ecn }
}

fn fq_pie() -> Queue {
    Queue::FqPie {
        flows: 1024,
        quantum_bytes: Bytes(1514),
        memory_limit_bytes: Bytes(32 << 20),
        target_ns: Span(ms(15)),
        tupdate_ns: Span(ms(15)),
        alpha: 2,
        beta: 20,
        ecn: false,
        ecn_prob: 10,
    }
}

fn red(probability: f64, ecn: bool) -> Queue {
    Queue::Red {
        min_bytes: Bytes(15_000),
        max_bytes: Bytes(45_000),
        avpkt_bytes: Bytes(1500),
        burst: 15,
        probability: Probability::new(probability).expect("a probability"),
        bandwidth_bps: Rate(RATE),
        ecn,
    }
}

fn dualpi2() -> Queue {
    Queue::Dualpi2 {
        target_ns: Span(ms(15)),
        tupdate_ns: Span(ms(16)),
        alpha: 0.16,
        beta: 3.2,
        step_thresh_ns: Span(ms(1)),
        coupling_factor: 2,
        classic_protection: 10,
    }
}

#[derive(Clone, Copy)]
struct Source {
    flow: u64,
    ecn: Ecn,
    gap_ns: u64,
}

#[derive(Default)]
struct Result {
    /// Delays of the packets of each flow that arrived, in order.
    delays: BTreeMap<u64, Vec<Span>>,
    marked: BTreeMap<u64, u64>,
    /// Times of drops, each rounded up to the next offer of a packet.
    drops: Vec<Time>,
    stats: Stats,
}

impl Result {
    fn mean_delay_ms(&self, flow: u64) -> f64 {
        let delays = &self.delays[&flow];
        // Only the second half counts: the queue has then reached its equilibrium.
        let late = &delays[delays.len() / 2..];
        late.iter().map(|delay| delay.as_secs_f64() * 1e3).sum::<f64>() / late.len() as f64
    }

    fn mark_count(&self, flow: u64) -> u64 {
        self.marked.get(&flow).copied().unwrap_or(0)
    }
}

fn offer(config: &plan::Link, sources: &[Source], seconds: u64) -> Result {
    let mut link: Link<Segment> = Link::new(config, &plan::Traces::default(), 7).expect("a configuration that can be");
    let (mut rng, mut result) = (rng(1), Result::default());
    let times = sources.iter().enumerate().flat_map(|(number, source)| {
        let offset = number as u64 * 1_000;
        (0..)
            .map(move |count| (Time(offset + count * source.gap_ns), number))
            .take_while(move |(at, _)| at.0 < ms(1000 * seconds))
    });
    let mut times: Vec<(Time, usize)> = times.collect();
    times.sort_unstable();
    for (now, number) in times {
        while let Some((at, packet)) = link.poll_due(now) {
            result.delays.entry(packet.flow).or_default().push(at.since(packet.sent_at));
            *result.marked.entry(packet.flow).or_default() += u64::from(packet.ecn == Ecn::Ce);
        }
        let Source { flow, ecn, .. } = sources[number];
        link.send(now, Segment { flow, ecn, sent_at: now }, Bytes(1500), Span::ZERO, &mut rng);
        let dropped = link.stats(now).dropped.0 - result.drops.len() as u64;
        result.drops.extend((0..dropped).map(|_| now));
    }
    result.stats = link.stats(Time(ms(1000 * seconds)));
    result
}

fn overload(queue: Queue, ecn: Ecn, factor: f64, seconds: u64) -> Result {
    let source = Source { flow: 1, ecn, gap_ns: (ms(1) as f64 / factor) as u64 };
    offer(&bottleneck(queue, 10_000), &[source], seconds)
}

#[test]
fn codel_waits_one_interval_and_then_drops_at_a_rising_rate() {
    let result = overload(codel(false), Ecn::NotEct, 1.1, 20);
    let gaps: Vec<f64> = result.drops.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1e3).collect();
    // The delay reaches the target after about 50 ms, and stays above it for an interval of 100 ms.
    assert!((100..300).contains(&(result.drops[0].0 / 1_000_000)), "first drop at {}", result.drops[0]);
    // RFC 8289, section 5.6: the gap after drop n is interval / sqrt(n); packets leave only every millisecond.
    for count in [4, 16, 64] {
        let expected = 100.0 / f64::from(count).sqrt();
        let gap = gaps[count as usize - 1];
        assert!((gap - expected).abs() < 0.2 * expected + 1.5, "gap {count} is {gap} ms, not {expected}");
    }
    assert_eq!(result.stats.early, result.stats.dropped, "the limit is not reached");
    let control = overload(Queue::Fifo {}, Ecn::NotEct, 1.1, 20);
    assert_eq!(control.stats.dropped, Packets(0));
}

#[test]
fn codel_marks_packets_that_are_ecn_capable_instead_of_dropping_them() {
    let marking = overload(codel(true), Ecn::Ect0, 1.1, 5);
    assert_eq!(marking.stats.dropped, Packets(0));
    assert!(marking.mark_count(1) > 10);
    let not_capable = overload(codel(true), Ecn::NotEct, 1.1, 5);
    assert_eq!(not_capable.stats.marked, Packets(0));
    assert!(not_capable.stats.dropped > Packets(10));
}

#[test]
fn pie_converges_to_its_target() {
    let result = overload(pie(false), Ecn::NotEct, 1.2, 40);
    let delay = result.mean_delay_ms(1);
    assert!((12.0..18.0).contains(&delay), "mean delay {delay} ms");
    // The excess over the rate must be dropped: about one packet in six.
    let ratio = result.stats.dropped.0 as f64 / result.stats.offered.0 as f64;
    assert!((0.155..0.18).contains(&ratio), "drops {ratio}");
    let control = overload(Queue::Fifo {}, Ecn::NotEct, 1.2, 40);
    assert!(control.mean_delay_ms(1) > 1000.0);
}

#[test]
fn pie_marks_up_to_a_drop_probability_of_a_tenth_and_drops_above_it() {
    let mild = overload(pie(true), Ecn::Ect0, 1.05, 20);
    assert!(mild.mark_count(1) > 0);
    let heavy = overload(pie(true), Ecn::Ect0, 1.5, 20);
    assert!(heavy.stats.dropped > Packets(1000), "a mark does not reduce open-loop traffic");
}

/// Returns the ratio of packets that a queue marks while it contains a fixed number of packets: it is filled once, and
/// then the load equals the link's rate.
fn mark_ratio(queue: Queue, packets: u32) -> f64 {
    let mut link: Link<Segment> =
        Link::new(&bottleneck(queue, 1000), &plan::Traces::default(), 3).expect("a link that can be");
    let mut rng = rng(1);
    let packet = |now| Segment { flow: 1, ecn: Ecn::Ect0, sent_at: now };
    for _ in 0..packets {
        link.send(Time::ZERO, packet(Time::ZERO), Bytes(1500), Span::ZERO, &mut rng);
    }
    for number in 1..=20_000 {
        let now = Time(ms(number));
        link.send(now, packet(now), Bytes(1500), Span::ZERO, &mut rng);
    }
    link.stats(Time(ms(20_000))).marked.0 as f64 / 20_000.0
}

#[test]
fn red_follows_its_curve() {
    // Floyd and Jacobson, section 7: gaps between marks are uniform from 1 to 1/p, so one packet in (1/p + 1) / 2 is
    // marked. On arrival, a packet finds all packets in the queue except the one being sent and itself.
    let expected = |packets: u32| {
        let position = (f64::from(packets - 1) * 1500.0 - 15_000.0) / 30_000.0;
        let probability = 0.2 * position.max(0.0);
        if position >= 1.0 { 1.0 } else { 2.0 * probability / (1.0 + probability) }
    };
    let follows = |probability: f64, packets: u32| {
        let ratio = mark_ratio(red(probability, true), packets);
        ((ratio - expected(packets)).abs() < 0.02, ratio)
    };
    for packets in [6, 21, 41] {
        let (follows, ratio) = follows(0.2, packets);
        assert!(follows, "{packets} packets in the queue: {ratio}, not {}", expected(packets));
    }
    let (control, ratio) = follows(0.1, 21);
    assert!(!control, "half of the probability has another curve: {ratio}");
}

#[test]
fn fair_queues_isolate_a_slow_flow_from_twenty_fast_ones() {
    let slow = Source { flow: 0, ecn: Ecn::NotEct, gap_ns: ms(50) };
    let fast = (1..=20).map(|flow| Source { flow, ecn: Ecn::NotEct, gap_ns: ms(5) });
    let sources: Vec<Source> = [slow].into_iter().chain(fast).collect();
    let fq = Queue::Fq {
        flow_limit: 100,
        quantum_bytes: Bytes(3028),
        initial_quantum_bytes: Bytes(15140),
        ce_threshold_ns: None,
    };
    for queue in [fq_codel(), fq_pie(), fq] {
        let result = offer(&bottleneck(queue.clone(), 10_000), &sources, 20);
        let delay = result.mean_delay_ms(0);
        // A packet waits for the one being sent, and for those of other new flows.
        assert!(delay < 6.0, "{}: {delay} ms", queue.name());
        assert_eq!(result.delays[&0].len(), 400, "{}: nothing of the slow flow is dropped", queue.name());
        let shares: Vec<usize> = (1..=20).map(|flow| result.delays[&flow].len()).collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(most * 100 <= least * 115, "{}: the fast flows share evenly: {shares:?}", queue.name());
    }
    let control = offer(&bottleneck(Queue::Fifo {}, 1000), &sources, 20);
    assert!(control.mean_delay_ms(0) > 500.0);
}

#[test]
fn dualpi2_serves_the_low_latency_queue_first_and_couples_its_marks() {
    let classic = Source { flow: 1, ecn: Ecn::NotEct, gap_ns: 900_000 };
    let l4s = Source { flow: 2, ecn: Ecn::Ect1, gap_ns: ms(10) };
    let result = offer(&bottleneck(dualpi2(), 10_000), &[classic, l4s], 60);
    let (delay, classic_delay) = (result.mean_delay_ms(2), result.mean_delay_ms(1));
    assert!(delay < 3.0, "the L queue waits for the packet being sent alone: {delay} ms");
    assert!(classic_delay > 10.0, "{classic_delay}");
    // RFC 9332, section 2.1: with a classic drop probability of p^2, the marking probability of the L queue is k * p.
    let dropped = result.stats.dropped.0 as f64 / (result.stats.offered.0 as f64 - 6000.0);
    let marked = result.mark_count(2) as f64 / 6000.0;
    let coupled = 2.0 * dropped.sqrt();
    assert!((marked - coupled).abs() < 0.1, "marked {marked}, coupled {coupled}");
    let control = offer(&bottleneck(Queue::Fifo {}, 10_000), &[classic, l4s], 20);
    assert!(control.mean_delay_ms(2) > 500.0);
}

#[test]
fn dualpi2_keeps_a_tenth_for_classic_packets_that_were_alone_before() {
    let mut link: Link<Segment> =
        Link::new(&bottleneck(dualpi2(), 10_000), &plan::Traces::default(), 7).expect("a configuration that can be");
    let mut rng = rng(1);
    let mut offer = |now: Time, ecn: Ecn, link: &mut Link<Segment>| {
        link.send(now, Segment { flow: 1, ecn, sent_at: now }, Bytes(1500), Span::ZERO, &mut rng);
    };
    let (mut classic, mut l4s) = (0, 0);
    for step in 0..2150_u64 {
        let now = Time(step * ms(1));
        while let Some((at, packet)) = link.poll_due(now) {
            if at >= Time(ms(2050)) {
                *(if packet.ecn == Ecn::NotEct { &mut classic } else { &mut l4s }) += 1;
            }
        }
        // One packet per millisecond is the capacity, which classic traffic alone fills for 2 s. The overload that
        // follows raises the drop probability only later.
        offer(now, Ecn::NotEct, &mut link);
        if step % 10 == 0 {
            offer(now, Ecn::NotEct, &mut link);
        }
        if step >= 2000 {
            offer(now, Ecn::Ect1, &mut link);
            offer(now, Ecn::Ect1, &mut link);
        }
    }
    let share = f64::from(classic) / f64::from(classic + l4s);
    assert!((0.05..0.2).contains(&share), "{classic} classic packets beside {l4s}");
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    let policer = plan::Policer { rate_bps: Rate(RATE / 4), burst_bytes: Bytes(30_000), after: false };
    for after in [false, true] {
        let policer = plan::Policer { after, ..policer };
        let config = plan::Link { policer: Some(policer), ..bottleneck(Queue::Fifo {}, 1000) };
        let source = Source { flow: 1, ecn: Ecn::NotEct, gap_ns: ms(1) };
        let result = offer(&config, &[source], 20);
        // A burst of 20 packets, and then one packet in four.
        let passed = result.stats.offered.0 - result.stats.policed.0;
        assert!(passed.abs_diff(5020) <= 8, "{passed} passed");
        assert_eq!(result.stats.dropped, Packets(0));
    }
}

#[test]
fn aggregated_packets_leave_together() {
    let aggregation = plan::Aggregation { interval_ns: Span(ms(10)), max_bytes: Some(Bytes(6000)) };
    let config = plan::Link { aggregation: Some(aggregation), ..plain() };
    let offers = common::full_sized([0, ms(1), ms(2), ms(3), ms(4), ms(30)]);
    let outcome = common::carry(&config, None, 1, &offers);
    // Four packets fill the first opportunity; the fifth waits for the next one; the last schedules its own.
    let expected = [(10, 0), (10, 1), (10, 2), (10, 3), (20, 4), (40, 5)];
    assert_eq!(outcome.arrivals, expected.map(|(at_ms, number)| (ms(at_ms), number)));
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ack {
    flow: u64,
    number: u64,
    has_sack: bool,
}

impl Packet for Ack {
    fn flow(&self) -> u64 {
        self.flow
    }
    fn is_ack(&self) -> bool {
        true
    }
    fn is_plain_ack(&self) -> bool {
        !self.has_sack
    }
}

#[test]
fn ack_thinning_keeps_the_latest_ack_and_the_last_one_arrives() {
    let config = plan::Link { ack_thinning: Some(4), ..plain() };
    let mut link: Link<Ack> = Link::new(&config, &plan::Traces::default(), 1).expect("a link that can be");
    let mut rng = rng(1);
    let mut arrived = Vec::new();
    // Ten acknowledgements, of which the seventh carries SACK blocks; another flow has a single one.
    for number in 1..=10 {
        let now = Time(ms(number));
        while let Some((at, ack)) = link.poll_due(now) {
            arrived.push((at.0 / ms(1), ack.flow, ack.number));
        }
        let ack = Ack { flow: 1, number, has_sack: number == 7 };
        link.send(now, ack, Bytes(52), Span::ZERO, &mut rng);
        if number == 2 {
            link.send(now, Ack { flow: 2, ..ack }, Bytes(52), Span::ZERO, &mut rng);
        }
    }
    while let Some(now) = link.next_wake() {
        while let Some((at, ack)) = link.poll_due(now) {
            arrived.push((at.0 / ms(1), ack.flow, ack.number));
        }
    }
    assert_eq!(arrived, [(4, 1, 4), (7, 2, 2), (7, 1, 7), (13, 1, 10)]);
    let stats = link.stats(Time(ms(100)));
    assert_eq!((stats.thinned, stats.is_balanced()), (Packets(7), true));
}

#[test]
fn a_falling_delay_does_not_reorder_and_a_rising_one_applies_immediately() {
    let point = |at_ms, delay_ms| plan::ProfilePoint {
        at_ns: Time(ms(at_ms)),
        rate_bps: None,
        delay_ns: Some(Span(ms(delay_ms))),
        loss: None,
    };
    let profile = plan::Profile { period_ns: None, points: vec![point(0, 50), point(10, 5), point(100, 80)] };
    let traces = plan::Traces { profiles: [("p".to_owned(), profile)].into(), ..plan::Traces::default() };
    let config = plan::Link { profile: Some("p".to_owned()), ..plain() };
    let mut link: Link<u64> = Link::new(&config, &traces, 1).expect("a link that can be");
    let mut rng = rng(1);
    let mut arrivals = Vec::new();
    for (number, at_ms) in [0, 20, 60, 120].into_iter().enumerate() {
        common::run_until(&mut link, Time(ms(at_ms)), &mut arrivals);
        link.send(Time(ms(at_ms)), number as u64, Bytes(1500), Span::ZERO, &mut rng);
    }
    common::run_until(&mut link, Time::MAX, &mut arrivals);
    assert_eq!(arrivals, [(50, 0), (50, 1), (65, 2), (200, 3)].map(|(at_ms, number)| (ms(at_ms), number)));
}

#[test]
fn loss_and_rate_follow_a_repeating_profile() {
    let point = |at_ms, rate_bps, loss| plan::ProfilePoint {
        at_ns: Time(ms(at_ms)),
        rate_bps: Some(Rate(rate_bps)),
        delay_ns: None,
        loss: Probability::new(loss),
    };
    let points = vec![point(0, RATE, 0.0), point(1000, RATE / 2, 1.0)];
    let profile = plan::Profile { period_ns: Some(Span(ms(2000))), points };
    let traces = plan::Traces { profiles: [("p".to_owned(), profile)].into(), ..plan::Traces::default() };
    let config = plan::Link {
        capacity: plan::Capacity::Profile {},
        profile: Some("p".to_owned()),
        ..bottleneck(Queue::Fifo {}, 10)
    };
    let mut link: Link<u64> = Link::new(&config, &traces, 1).expect("a link that can be");
    let mut rng = rng(1);
    let lost =
        (0..6000).filter(|at_ms| link.send(Time(ms(*at_ms)), 0, Bytes(1500), Span::ZERO, &mut rng) == Sent::Lost);
    assert_eq!(lost.count(), 3000, "every second second loses everything");
    assert_eq!(link.capacity_bytes(Time(ms(6000))), Some(Bytes(3 * (1_500_000 + 750_000))));
}
