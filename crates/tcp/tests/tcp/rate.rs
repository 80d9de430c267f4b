//! Tests of delivery-rate samples, of application-limited marks, and of pacing.

use crate::common::*;
use std::sync::{Arc, Mutex};
use thalweg_cc::{Ack, RateSample};
use thalweg_units::{Bytes, Rate, Span, Time};

type Samples = Arc<Mutex<Vec<(Time, RateSample, Ack)>>>;

fn rate_of(sample: &RateSample) -> Option<f64> {
    sample.rate(Bytes(MSS)).map(|rate| rate.0 as f64)
}

fn sampled(cwnd: u64, rate: Rate) -> (Pipe, Samples) {
    let controller = Fixed::new(cwnd);
    let samples = Arc::clone(&controller.samples);
    (Pipe::new(controller, Some(rate), ms(10)), samples)
}

#[test]
fn delivery_rate_samples_equal_the_bottleneck_rate() {
    let (mut pipe, samples) = sampled(100, Rate::from_mbps(20));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    let payload_rate = 20e6 * 1448.0 / 1500.0;
    let samples = samples.lock().unwrap();
    let late: Vec<f64> = samples.iter().filter(|s| s.0 > at_ms(500)).filter_map(|s| rate_of(&s.1)).collect();
    assert!(late.len() > 500);
    assert!(late.iter().all(|rate| (rate / payload_rate - 1.0).abs() < 0.03), "{late:?}");
    let delivery_rate = pipe.info().delivery_rate.expect("there were samples").0 as f64;
    assert!((delivery_rate / payload_rate - 1.0).abs() < 0.03, "{delivery_rate}");
}

#[test]
fn delivery_rate_samples_equal_one_window_per_rtt_when_cwnd_limited() {
    let (mut pipe, samples) = sampled(10, Rate::from_mbps(1_000));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    let expected = 10.0 * 1448.0 * 8.0 / 0.020;
    let samples = samples.lock().unwrap();
    let late: Vec<f64> = samples.iter().filter(|s| s.0 > at_ms(500)).filter_map(|s| rate_of(&s.1)).collect();
    assert!(late.iter().all(|rate| *rate < expected * 1.05), "never more: {late:?}");
    assert!(late.iter().any(|rate| *rate > expected * 0.9), "{late:?}");
}

#[test]
fn ack_aggregation_does_not_inflate_the_delivery_rate() {
    let (mut pipe, samples) = sampled(100, Rate::from_mbps(20));
    // ACKs return in bursts, every 20 ms.
    pipe.back = Box::new(|packet, _| match packet {
        thalweg_tcp::ToSender::Ack(ack) => Fate::Late(ms(20 - u64::from(ack.tsval.0) % 20)),
        thalweg_tcp::ToSender::SynAck(_) => Fate::Deliver,
    });
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    let payload_rate = 20e6 * 1448.0 / 1500.0;
    let samples = samples.lock().unwrap();
    let highest = samples.iter().filter(|s| s.0 > at_ms(500)).filter_map(|s| rate_of(&s.1)).fold(0.0, f64::max);
    assert!(highest < payload_rate * 1.35, "{highest} of {payload_rate}");
}

#[test]
fn samples_are_marked_as_application_limited_when_there_is_no_data() {
    let (mut pipe, samples) = sampled(100, Rate::from_mbps(20));
    pipe.connect();
    // 400 segments at once keep the pipe full; one segment every 5 ms does not.
    pipe.write(segments(400));
    pipe.run_until(at_ms(1_000));
    for _ in 0..50 {
        pipe.write(segments(1));
        pipe.run_until(pipe.now + ms(5));
    }
    let samples = samples.lock().unwrap();
    let busy = samples.iter().filter(|s| (at_ms(100)..at_ms(250)).contains(&s.0));
    assert!(busy.clone().count() > 50 && busy.clone().all(|s| !s.1.is_app_limited), "the pipe limits");
    let idle = samples.iter().filter(|s| s.0 > at_ms(1_100));
    assert!(idle.clone().count() > 10 && idle.clone().all(|s| s.1.is_app_limited), "the application limits");
}

#[test]
fn delivered_and_lost_segments_sum_to_the_segments_sent() {
    let (mut pipe, samples) = sampled(50, Rate::from_mbps(20));
    pipe.forward = drop_first((0..1_000).step_by(29));
    pipe.connect();
    pipe.write(segments(1_000));
    pipe.run_to_end(at_ms(20_000));
    let info = pipe.info();
    // The SYN counts as delivered.
    assert_eq!(info.delivered.0, 1_000 + 1 + info.counters.dsacks);
    assert!(info.lost.0 >= 35, "{}", info.lost);
    let acked: u64 = samples.lock().unwrap().iter().map(|s| s.2.acked.0).sum();
    assert!(acked <= info.delivered.0);
}

#[test]
fn a_paced_connection_sends_at_the_pacing_rate_in_bursts_of_a_millisecond() {
    let rate = Rate::from_mbps(40);
    let mut pipe = Pipe::new(Fixed::paced(1_000, rate), None, ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    let sent: Vec<Time> = pipe.data().map(|(at, _)| at).filter(|at| *at > at_ms(1_000)).collect();
    let payload = Bytes((sent.len() as u64 - 1) * MSS);
    let measured = Rate::of(payload, sent[sent.len() - 1].since(sent[0]));
    assert!((measured.0 as f64 / 40e6 - 1.0).abs() < 0.01, "{measured}");
    // 40 Mbit/s are 5000 bytes per millisecond: three segments, 0.87 ms apart. The pattern restarts after pieces of at
    // most 45 segments.
    let mut bursts = vec![1];
    for pair in sent.windows(2) {
        match pair[1].since(pair[0]) {
            Span(0) => *bursts.last_mut().expect("there is one") += 1,
            gap => {
                let length = *bursts.last().expect("there is one");
                assert!(bursts.len() == 1 || gap == rate.time_to_send(segments(length)), "{gap} after {length}");
                bursts.push(1);
            }
        }
    }
    let inner = &bursts[1..bursts.len() - 1];
    let short = inner.iter().filter(|length| **length != 3).count();
    assert!(inner.iter().all(|length| *length <= 3) && short <= inner.len() / 14, "{inner:?}");
}

#[test]
fn a_slow_paced_connection_sends_two_segments_at_a_time() {
    let mut pipe = Pipe::new(Fixed::paced(1_000, Rate::from_mbps(1)), None, ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(5_000));
    let sent: Vec<Time> = pipe.data().map(|(at, _)| at).filter(|at| *at > at_ms(1_000)).collect();
    let alone = sent.windows(3).filter(|three| three[0] != three[1] && three[1] != three[2]).count();
    assert_eq!(alone, 0);
    assert!(sent.len() > 300);
}

#[test]
fn a_cwnd_limited_sender_waits_for_an_ack_due_within_a_millisecond() {
    // The receiver at first acknowledges every segment; these are 0.6 ms apart.
    let mut pipe = Pipe::new(Fixed::new(60), Some(Rate::from_mbps(20)), ms(10));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(120));
    let sent: Vec<Time> = pipe.data().map(|(at, _)| at).filter(|at| *at > at_ms(62)).collect();
    let pairs = sent.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(pairs > sent.len() / 3, "{pairs} pairs of {} segments", sent.len());
}

#[test]
fn an_unpaced_connection_sends_one_or_two_bursts_per_round_trip() {
    let mut pipe = Pipe::new(Fixed::new(40), None, ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    let instants: std::collections::BTreeSet<u64> = pipe.data().map(|(at, _)| at.0 / 1_000_000).collect();
    assert!(instants.len() <= 2 * 20, "one or two bursts per round trip: {instants:?}");
}

#[test]
fn bbr_fills_the_pipe_and_keeps_the_queue_short() {
    let mut pipe = Pipe::new(controller("bbr"), Some(Rate::from_mbps(20)), ms(20));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(3_000));
    let before = pipe.sender.acked();
    pipe.rtts.clear();
    pipe.run_until(at_ms(6_000));
    let rate = Rate::of(pipe.sender.acked() - before, Span::from_secs(3));
    assert!(rate.0 as f64 > 0.9 * 20e6 * 1448.0 / 1500.0, "{rate}");
    pipe.rtts.sort_unstable();
    let median = pipe.rtts[pipe.rtts.len() / 2];
    assert!(median < ms(60), "{median}");
    assert!(pipe.info().pacing_rate.is_some());
}

#[test]
fn cubic_and_reno_fill_the_pipe() {
    for name in ["cubic", "reno"] {
        let mut pipe = Pipe::new(controller(name), Some(Rate::from_mbps(20)), ms(20));
        pipe.forward = drop_first((3_000..20_000).step_by(3_000));
        pipe.connect();
        pipe.write(Bytes::MAX);
        pipe.run_until(at_ms(6_000));
        let rate = Rate::of(pipe.sender.acked(), Span::from_secs(6));
        assert!(rate.0 as f64 > 0.85 * 20e6, "{name}: {rate}");
        assert_eq!(pipe.info().pacing_rate, None);
        assert_eq!(pipe.info().counters.timeouts, 0, "{name}");
    }
}
