//! Tests of connection setup, windows, socket buffers and idle periods.

use crate::common::*;
use thalweg_tcp::{KernelGeneration, ReceiverConfig, SenderConfig, ToReceiver, ToSender};
use thalweg_units::{Bytes, Rate, Span};

#[test]
fn the_first_data_leaves_one_round_trip_after_the_syn() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(Bytes(100));
    let end = pipe.run_to_end(at_ms(1_000));
    assert!(matches!(pipe.sent[0], (t, ToReceiver::Syn(_)) if t == at_ms(0)));
    assert!(matches!(pipe.acks[0], (t, ToSender::SynAck(_)) if t == at_ms(10)));
    assert!(matches!(pipe.sent[1], (t, ToReceiver::Established(_)) if t == at_ms(20)));
    assert!(matches!(pipe.sent[2], (t, ToReceiver::Data(data)) if t == at_ms(20) && data.len == 100));
    assert_eq!(end, at_ms(40), "the ACK of a short segment is not delayed");
    assert_eq!(pipe.info().srtt, Some(ms(20)));
}

#[test]
fn a_lost_syn_is_retransmitted_after_one_second_and_then_two() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.forward = Box::new(|packet, before| match packet {
        ToReceiver::Syn(_) if before < 2 => Fate::Drop,
        _ => Fate::Deliver,
    });
    pipe.connect();
    pipe.write(Bytes(100));
    pipe.run_to_end(at_ms(10_000));
    let syns: Vec<_> = pipe.sent.iter().filter(|(_, p)| matches!(p, ToReceiver::Syn(_))).map(|(at, _)| *at).collect();
    // Timers of that length have a resolution of 64 ticks.
    assert_eq!(syns, [at_ms(0), at_ms(1_024), at_ms(3_072)]);
    assert_eq!(pipe.info().counters.syn_retransmits, 2);
}

#[test]
fn two_lost_syns_make_the_initial_window_one_segment_and_one_does_not() {
    for (lost, window) in [(1, 10), (2, 1)] {
        let mut pipe = Pipe::new(controller("reno"), None, ms(10));
        pipe.forward = Box::new(move |packet, before| match packet {
            ToReceiver::Syn(_) if before < lost => Fate::Drop,
            _ => Fate::Deliver,
        });
        pipe.connect();
        pipe.write(Bytes::MAX);
        while pipe.data().count() == 0 {
            pipe.run_until(pipe.now + ms(1));
        }
        assert_eq!(pipe.data().count(), window, "{lost} lost");
    }
}

#[test]
fn spurious_syn_retransmissions_do_not_reduce_the_initial_window() {
    // The SYN is repeated twice, after 1 s and 3 s, before the answer to the first one can arrive.
    let mut pipe = Pipe::new(controller("reno"), None, ms(1_750));
    pipe.connect();
    pipe.write(Bytes(14_480));
    let end = pipe.run_to_end(at_ms(20_000));
    assert_eq!(pipe.info().counters.syn_retransmits, 2);
    assert_eq!(end, at_ms(7_000), "ten segments take the handshake's round trip and one more");
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.back = Box::new(|_, before| if before == 0 { Fate::Drop } else { Fate::Deliver });
    pipe.connect();
    pipe.write(Bytes(100));
    let end = pipe.run_to_end(at_ms(10_000));
    assert!(end <= at_ms(1_100), "{end}");
}

#[test]
fn ten_segments_leave_in_the_first_round_trip() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(39));
    assert_eq!(pipe.data().count(), 10);
    pipe.run_until(at_ms(59));
    assert_eq!(pipe.data().count(), 30, "slow start doubles");
}

#[test]
fn every_segment_is_acknowledged_at_first_and_every_second_later() {
    let mut pipe = Pipe::new(Fixed::new(20), Some(Rate::from_mbps(10)), ms(10));
    pipe.connect();
    pipe.write(segments(400));
    pipe.run_to_end(at_ms(10_000));
    let acks: Vec<u64> = pipe.ack_packets().map(|(_, ack)| ack.next.0).collect();
    let first: Vec<u64> = (1..=16).collect();
    assert_eq!(&acks[..16], first.as_slice(), "quick mode");
    let late = &acks[acks.len() - 50..acks.len() - 2];
    // Segments are sent in pairs, of which the second carries the PSH flag. A pair is split at the end of a piece in
    // the send buffer.
    assert!(late.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{late:?}");
    let pairs = late.windows(2).filter(|pair| pair[1] - pair[0] == 2).count();
    assert!(pairs >= 35, "{late:?}");
}

#[test]
fn a_single_full_segment_that_ends_a_write_is_acknowledged_immediately() {
    let mut pipe = Pipe::new(Fixed::new(20), None, ms(10));
    pipe.connect();
    pipe.write(segments(60));
    pipe.run_until(at_ms(1_000));
    pipe.write(segments(1));
    let end = pipe.run_to_end(at_ms(2_000));
    assert_eq!(end, at_ms(1_020), "after a pause ACKs are quick");
    // Wait until quick mode ends and the receive window stops growing.
    for _ in 0..200 {
        let now = pipe.now;
        pipe.write(segments(1));
        pipe.run_to_end(now + ms(500));
    }
    let now = pipe.now;
    pipe.write(segments(1));
    let end = pipe.run_to_end(now + ms(500));
    assert_eq!(end.since(now), ms(20), "it carries the PSH flag");
}

#[test]
fn a_segment_that_appears_to_end_a_write_is_acknowledged_immediately() {
    let mut pipe = Pipe::new(Fixed::new(20), None, ms(10));
    pipe.connect();
    pipe.write(segments(60));
    for _ in 0..200 {
        pipe.run_until(pipe.now + ms(30));
        pipe.write(segments(1));
    }
    let now = pipe.now;
    pipe.write(Bytes(100));
    let end = pipe.run_to_end(now + ms(500));
    assert_eq!(end.since(now), ms(20));
}

/// Returns the bytes received per round trip if a receive buffer of 128 KiB is the limit.
fn received_per_round_trip(kernel: KernelGeneration) -> u64 {
    let receiver = ReceiverConfig { rcvbuf_max: Bytes(131_072), kernel, ..ReceiverConfig::default() };
    let mut pipe = Pipe::with(SenderConfig::default(), receiver, Fixed::new(1_000), None, ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(5_000));
    let before = pipe.sender.acked();
    pipe.run_until(at_ms(10_000));
    (pipe.sender.acked().0 - before.0) / 50
}

#[test]
fn on_linux_6_1_the_window_is_half_of_the_receive_buffer() {
    let window = 65_536 - MSS;
    let received = received_per_round_trip(KernelGeneration::Linux6_1);
    assert!((window * 98 / 100..=65_536).contains(&received), "{received} of {window} bytes");
}

#[test]
fn since_linux_6_6_the_window_is_scaled_by_the_payload_share_of_segment_memory() {
    // The window is 1448 of 2408 bytes and 1448 of 2304 bytes, in whole 256ths.
    for (kernel, ratio) in [(KernelGeneration::Linux6_12, 153), (KernelGeneration::Linux6_18, 160)] {
        let window = 131_072 * ratio / 256;
        let received = received_per_round_trip(kernel);
        assert!((window * 98 / 100..=window).contains(&received), "{kernel:?}: {received} of {window} bytes");
    }
}

#[test]
fn a_segment_is_cut_at_the_end_of_the_receive_window() {
    let receiver = ReceiverConfig { rcvbuf_max: Bytes(20_000), ..ReceiverConfig::default() };
    let mut pipe = Pipe::with(SenderConfig::default(), receiver, Fixed::new(1_000), None, ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(2_000));
    assert!(pipe.data().any(|(_, data)| u64::from(data.len) < MSS), "no segment is short");
}

#[test]
fn the_receive_window_grows_until_it_no_longer_limits() {
    let mut pipe = Pipe::new(controller("reno"), Some(Rate::from_mbps(100)), ms(25));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(3_000));
    let before = pipe.sender.acked();
    pipe.run_until(at_ms(4_000));
    let rate = Rate::of(pipe.sender.acked() - before, Span::from_secs(1));
    assert!(rate >= Rate::from_mbps(95), "{rate}");
    let largest = pipe.ack_packets().map(|(_, ack)| ack.window).max();
    assert!(largest > Some(Bytes(1_000_000)), "{largest:?}");
}

#[test]
fn the_window_never_shrinks() {
    let mut pipe = Pipe::new(controller("reno"), Some(Rate::from_mbps(50)), ms(25));
    pipe.forward = drop_first((0..2_000).step_by(37));
    pipe.connect();
    pipe.write(segments(5_000));
    pipe.run_to_end(at_ms(100_000));
    let mut edge = 0;
    for (_, ack) in pipe.ack_packets() {
        let right = ack.next.0 * MSS + ack.window.0;
        assert!(right >= edge, "{ack:?}");
        edge = right;
    }
}

/// Returns the bytes acknowledged per round trip, with a send buffer of 100 kB and a window of 1000 segments.
fn sent_per_round_trip(kernel: KernelGeneration) -> u64 {
    let limited = SenderConfig { sndbuf_max: Bytes(100_000), kernel, ..SenderConfig::default() };
    let mut pipe =
        Pipe::with(limited, ReceiverConfig::default(), Fixed::new(1_000), Some(Rate::from_mbps(100)), ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(5_000));
    let before = pipe.sender.acked();
    pipe.run_until(at_ms(10_000));
    assert!(pipe.info().is_app_limited, "the application is woken when nothing is left to send");
    (pipe.sender.acked().0 - before.0) / 50
}

#[test]
fn an_instantaneous_write_is_limited_by_cwnd_regardless_of_the_send_buffer() {
    let sent = sent_per_round_trip(KernelGeneration::Linux6_1);
    assert!((600_000..=1_448_000).contains(&sent), "{sent} bytes");
}

#[test]
fn a_write_that_takes_time_ends_when_an_ack_releases_its_last_segment() {
    // A write has 256 KiB, more than twice the buffer.
    let sent = sent_per_round_trip(KernelGeneration::Linux6_18);
    assert!((150_000..=330_000).contains(&sent), "{sent} bytes");
}

#[test]
fn bbr_stays_in_startup_while_the_send_buffer_limits_it() {
    // As with the kernel's BBR and a non-blocking application, samples are application-limited.
    let sender = SenderConfig { sndbuf_max: Bytes(4 << 20), ..SenderConfig::default() };
    let mut pipe = Pipe::with(sender, ReceiverConfig::default(), controller("bbr"), Some(Rate::from_mbps(100)), ms(50));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(5_000));
    let mut mode = None;
    pipe.sender.report(pipe.now, &mut |name, value| {
        if name == "mode" {
            mode = Some(value);
        }
    });
    assert_eq!(mode, Some(0.0), "Startup");
}

#[test]
fn data_queued_during_the_handshake_is_application_limited_until_the_first_ack() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(20));
    assert!(pipe.info().is_app_limited, "the write began with nothing in flight");
    pipe.run_until(at_ms(41));
    assert!(!pipe.info().is_app_limited);
}

#[test]
fn after_an_idle_period_cwnd_is_halved_once_per_elapsed_timeout() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(segments(3_000));
    let end = pipe.run_to_end(at_ms(10_000));
    let (cwnd, rto) = (pipe.info().cwnd, pipe.info().rto);
    assert!(cwnd.0 > 300, "{cwnd}");
    pipe.run_until(end + Span(rto.0 * 5 / 2));
    pipe.write(segments(1));
    let halved = pipe.info().cwnd;
    assert_eq!(halved.0, cwnd.0 / 4, "two timeouts after the first");
    assert_eq!(pipe.info().ssthresh, None, "slow start may go on");
}

#[test]
fn cwnd_does_not_grow_while_application_limited() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(10_000));
    let before = pipe.info().cwnd;
    // Five segments every 20 ms: no pause reaches a timeout, and the window is never filled.
    for _ in 0..100 {
        pipe.write(segments(5));
        pipe.run_until(pipe.now + ms(20));
    }
    assert_eq!((pipe.info().cwnd, pipe.info().ssthresh), (before, None));
}

#[test]
fn unsent_data_is_discarded_on_stop() {
    let mut pipe = Pipe::new(controller("reno"), None, ms(10));
    pipe.connect();
    pipe.write(Bytes::MAX);
    pipe.run_until(at_ms(30));
    let now = pipe.now;
    pipe.sender.stop(now);
    pipe.run_to_end(at_ms(1_000));
    assert_eq!(pipe.sender.written(), segments(10));
    assert_eq!(pipe.receiver.delivered(), segments(10));
}

#[test]
fn a_later_write_extends_an_unsent_segment_but_not_a_sent_one() {
    let mut pipe = Pipe::new(Fixed::new(2), None, ms(10));
    pipe.connect();
    pipe.run_until(at_ms(25));
    pipe.write(Bytes(100));
    pipe.write(Bytes(100));
    pipe.write(Bytes(100));
    pipe.write(Bytes(MSS));
    pipe.run_to_end(at_ms(1_000));
    let sizes: Vec<u32> = pipe.data().map(|(_, data)| data.len).collect();
    assert_eq!(sizes, [100, 100, 1448, 100]);
}
