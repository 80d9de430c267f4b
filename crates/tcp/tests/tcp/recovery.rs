//! Tests of losses, and of events that resemble losses.

use crate::common::*;
use std::cell::RefCell;
use std::rc::Rc;
use thalweg_cc::CaState;
use thalweg_tcp::{AckPacket, KernelGeneration, ReceiverConfig, SenderConfig, ToReceiver};
use thalweg_units::{Packets, Rate, Span, Time};

/// Returns a window of `cwnd` segments on a path with a round trip of 20 ms, at a rate that keeps segments apart.
fn path(cwnd: u64) -> Pipe {
    Pipe::new(Fixed::new(cwnd), Some(Rate::from_mbps(20)), ms(10))
}

fn watch_states(pipe: &mut Pipe) -> Rc<RefCell<Vec<CaState>>> {
    let states = Rc::new(RefCell::new(vec![CaState::Open]));
    let recorded = Rc::clone(&states);
    pipe.watch = Box::new(move |now, sender| {
        let state = sender.info(now).ca_state;
        if recorded.borrow().last() != Some(&state) {
            recorded.borrow_mut().push(state);
        }
    });
    states
}

#[test]
fn a_single_loss_is_repaired_about_a_round_trip_later_without_a_timeout() {
    let mut pipe = path(20);
    pipe.forward = drop_first([100]);
    let states = watch_states(&mut pipe);
    pipe.connect();
    pipe.write(segments(300));
    pipe.run_to_end(at_ms(5_000));
    let sent = pipe.sent_at(100);
    assert_eq!(sent.len(), 2);
    let after = sent[1].since(sent[0]);
    // A round trip, and the time until three segments have arrived beyond the hole.
    assert!((ms(20)..ms(30)).contains(&after), "{after}");
    let counters = pipe.info().counters;
    assert_eq!((counters.timeouts, counters.recoveries, counters.retransmits), (0, 1, 1));
    assert_eq!(*states.borrow(), [CaState::Open, CaState::Disorder, CaState::Recovery, CaState::Open]);
}

#[test]
fn many_losses_in_a_window_are_repaired_in_one_recovery() {
    let mut pipe = path(60);
    pipe.forward = drop_first((100..140).step_by(3));
    pipe.connect();
    pipe.write(segments(400));
    pipe.run_to_end(at_ms(5_000));
    let counters = pipe.info().counters;
    assert_eq!((counters.timeouts, counters.recoveries, counters.retransmits), (0, 1, 14));
}

#[test]
fn recovery_sends_one_segment_per_two_delivered_and_ends_at_ssthresh() {
    let mut pipe = path(100);
    pipe.forward = drop_first([300]);
    let log = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&log);
    pipe.watch = Box::new(move |now, sender| {
        let info = sender.info(now);
        recorded.borrow_mut().push((info.ca_state, info.cwnd, info.inflight, info.counters.segments, info.delivered));
    });
    pipe.connect();
    pipe.write(segments(600));
    pipe.run_until(at_ms(450));
    let log = log.borrow();
    let first = log.iter().position(|entry| entry.0 == CaState::Recovery).expect("it recovers");
    let length = log[first..].iter().position(|entry| entry.0 == CaState::Open).expect("it ends");
    let (begin, end) = (log[first], log[first + length]);
    assert!(begin.1 >= Packets(95), "cwnd does not fall at once: {}", begin.1);
    assert_eq!(end.1, Packets(50), "cwnd ends at ssthresh");
    let falling: Vec<_> = log[first..first + length].iter().filter(|entry| entry.2 > Packets(50)).collect();
    let (from, to) = (falling[0], falling[falling.len() - 1]);
    let (sent, delivered) = (to.3 - from.3, to.4.0 - from.4.0);
    assert!(delivered > 60, "{delivered}");
    assert!((sent as f64 / delivered as f64 - 0.5).abs() < 0.06, "{sent} sent while {delivered} arrived");
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_after_two_round_trips() {
    let mut pipe = path(20);
    pipe.forward = drop_first([97, 98, 99]);
    pipe.connect();
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(5_000));
    let sent = pipe.sent_at(99);
    let after = sent[1].since(sent[0]);
    // Two smoothed round trips of 22 ms after the last ACK, which arrived a round trip after its segment was sent. The
    // ACK of the last segment that arrived was delayed, since that segment was alone.
    assert!((ms(44)..ms(125)).contains(&after), "{after}");
    let counters = pipe.info().counters;
    assert_eq!((counters.timeouts, counters.tlp_probes, counters.retransmits), (0, 1, 3));
    assert_eq!(pipe.info().cwnd, Packets(10), "a loss is a loss");
}

#[test]
fn the_tail_loss_probe_of_a_single_segment_waits_for_a_delayed_ack() {
    let mut pipe = path(20);
    pipe.forward = drop_first([99]);
    pipe.connect();
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(5_000));
    let sent = pipe.sent_at(99);
    let after = sent[1].since(sent[0]);
    assert!((ms(220)..ms(310)).contains(&after), "{after}");
    let counters = pipe.info().counters;
    assert_eq!((counters.timeouts, counters.tlp_probes, counters.retransmits), (0, 1, 1));
}

#[test]
fn a_loss_repaired_by_a_tail_loss_probe_lowers_cwnd() {
    let mut pipe = path(20);
    pipe.forward = drop_first([99]);
    pipe.connect();
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(5_000));
    pipe.write(segments(20));
    pipe.run_to_end(at_ms(10_000));
    assert_eq!(pipe.info().cwnd, Packets(10));
    assert_eq!(pipe.info().counters.recoveries, 0);
}

#[test]
fn an_unnecessary_tail_loss_probe_does_not_lower_cwnd() {
    let mut pipe = path(20);
    // All ACKs of the tail without SACK blocks are lost, but all data arrives.
    pipe.back = Box::new(|packet, _| match packet {
        thalweg_tcp::ToSender::Ack(ack) if ack.next.0 >= 98 && ack.sack.is_empty() => Fate::Drop,
        _ => Fate::Deliver,
    });
    pipe.connect();
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(5_000));
    let counters = pipe.info().counters;
    assert_eq!((counters.timeouts, counters.tlp_probes, counters.dsacks), (0, 1, 1));
    pipe.back = Box::new(|_, _| Fate::Deliver);
    pipe.write(segments(20));
    pipe.run_to_end(at_ms(10_000));
    assert_eq!(pipe.info().cwnd, Packets(20));
    assert_eq!(pipe.info().ssthresh, None);
}

#[test]
fn a_lost_retransmission_is_detected_without_a_timeout() {
    let mut pipe = path(40);
    pipe.forward = drop_times([(100, 3)]);
    pipe.connect();
    pipe.write(segments(1_000));
    pipe.run_to_end(at_ms(10_000));
    let sent = pipe.sent_at(100);
    assert_eq!(sent.len(), 4);
    assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) < ms(60)), "{sent:?}");
    assert_eq!(pipe.info().counters.timeouts, 0);
}

#[test]
fn the_timeout_doubles_each_time_while_all_packets_are_lost() {
    let mut pipe = path(20);
    // The loss probe retransmits 119.
    pipe.forward = drop_times((101..119).map(|seq| (seq, 1)).chain([(100, 4), (119, 2)]));
    pipe.connect();
    pipe.write(segments(120));
    pipe.run_to_end(at_ms(60_000));
    let sent = pipe.sent_at(100);
    let waits: Vec<u64> = sent.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect();
    assert!(pipe.info().counters.timeouts >= 3);
    // Timers expire late by up to about an eighth.
    let doubles = waits.windows(2).filter(|pair| pair[1].abs_diff(2 * pair[0]) <= pair[0] / 4).count();
    assert!(doubles >= 2, "{waits:?}");
    assert!(waits[0] >= 200, "{waits:?}");
}

#[test]
fn after_a_timeout_cwnd_restarts_at_one_segment() {
    let mut pipe = path(20);
    // The loss probe retransmits 119.
    pipe.forward = drop_times((100..119).map(|seq| (seq, 1)).chain([(119, 2)]));
    let at_timeout = Rc::new(RefCell::new(Vec::new()));
    let recorded = Rc::clone(&at_timeout);
    pipe.watch = Box::new(move |now, sender| {
        let info = sender.info(now);
        if info.counters.timeouts > recorded.borrow().len() as u64 {
            recorded.borrow_mut().push((info.cwnd, info.inflight, info.ca_state));
        }
    });
    pipe.connect();
    pipe.write(segments(120));
    pipe.run_to_end(at_ms(60_000));
    assert_eq!(*at_timeout.borrow(), [(Packets(1), Packets(1), CaState::Loss)]);
    assert!(pipe.info().ssthresh <= Some(Packets(10)));
}

#[test]
fn a_timeout_is_undone_when_segments_sent_only_once_are_acknowledged() {
    let mut pipe = path(20);
    // The first segment in flight is lost twice, so that its timestamp does not prove anything; the others are only
    // delayed.
    pipe.forward = drop_times([(34, 2)]);
    pipe.stall = Some((at_ms(60), at_ms(660)));
    pipe.connect();
    pipe.write(segments(400));
    pipe.run_until(at_ms(690));
    let info = pipe.info();
    assert!(info.counters.timeouts >= 1);
    assert_eq!(info.counters.undos, 1);
    assert_eq!((info.cwnd, info.ca_state), (Packets(20), CaState::Disorder));
    let sent_again: Vec<u64> = (35..54).filter(|seq| pipe.sent_at(*seq).len() > 1).collect();
    assert!(sent_again.is_empty(), "{sent_again:?}");
    pipe.run_to_end(at_ms(5_000));
}

#[test]
fn a_timeout_during_a_stall_is_undone_when_the_originals_arrive() {
    let mut pipe = path(20);
    pipe.stall = Some((at_ms(60), at_ms(660)));
    pipe.connect();
    pipe.write(segments(400));
    pipe.run_to_end(at_ms(10_000));
    let info = pipe.info();
    assert!(info.counters.timeouts >= 1);
    assert!(info.counters.undos >= 1, "{:?}", info.counters);
    assert_eq!(info.cwnd, Packets(20), "cwnd is what it was");
    assert_eq!(info.ssthresh, None, "and so is ssthresh");
    assert!(info.counters.retransmits <= 4, "what was not lost is not sent again: {:?}", info.counters);
}

#[test]
fn a_real_timeout_is_not_undone() {
    let mut pipe = path(20);
    pipe.forward = drop_first(100..120);
    pipe.connect();
    pipe.write(segments(120));
    pipe.run_to_end(at_ms(10_000));
    let info = pipe.info();
    assert_eq!(info.counters.undos, 0);
    assert!(info.ssthresh.is_some_and(|ssthresh| ssthresh <= Packets(10)), "{info:?}");
}

#[test]
fn reordering_within_a_quarter_rtt_causes_no_retransmission_once_reordering_was_observed() {
    let mut pipe = path(20);
    // The first delay, by less than three segments, is detected as reordering; the later ones exceed three segments.
    pipe.forward = delay_first([(50, Span::from_micros(900)), (100, ms(3)), (150, ms(3)), (200, ms(3))]);
    pipe.connect();
    pipe.write(segments(300));
    pipe.run_to_end(at_ms(5_000));
    let counters = pipe.info().counters;
    assert_eq!((counters.retransmits, counters.recoveries), (0, 0));
}

#[test]
fn with_observed_reordering_a_loss_is_detected_after_a_quarter_rtt() {
    let mut pipe = path(20);
    let mut late = delay_first([(50, Span::from_micros(900))]);
    let mut lost = drop_first([98]);
    pipe.forward = Box::new(move |packet, before| match lost(packet, before) {
        Fate::Deliver => late(packet, before),
        fate => fate,
    });
    pipe.connect();
    // One segment arrives beyond the hole, and no ACK follows that segment's.
    pipe.write(segments(100));
    pipe.run_to_end(at_ms(5_000));
    let sent = pipe.sent_at(98);
    let after = sent[1].since(sent[0]);
    // A round trip of 20 to 30 ms, a reordering window of 5 ms and a timer delay of 2 ms; not a timeout of 200 ms.
    assert!((ms(27)..ms(38)).contains(&after), "{after}");
    let counters = pipe.info().counters;
    assert_eq!((counters.retransmits, counters.timeouts, counters.tlp_probes), (1, 0, 0));
}

#[test]
fn the_reordering_timer_expires_on_time_while_pacing_delays_the_next_burst() {
    // Two segments every 46 ms. One pair is swapped, which is detected as reordering; the first segment of the last
    // pair is lost.
    let mut pipe = Pipe::new(Fixed::paced(20, Rate(500_000)), Some(Rate::from_mbps(20)), ms(10));
    let mut late = delay_first([(51, Span::from_micros(900))]);
    let mut lost = drop_first([97]);
    pipe.forward = Box::new(move |packet, before| match lost(packet, before) {
        Fate::Deliver => late(packet, before),
        fate => fate,
    });
    pipe.connect();
    pipe.write(segments(99));
    while pipe.info().counters.recoveries == 0 {
        pipe.run_until(pipe.now + ms(1));
        assert!(pipe.now < at_ms(5_000), "the loss is found");
    }
    let sent = pipe.sent_at(97);
    let found_after = pipe.now.since(sent[0]);
    // As without pacing: a round trip of 21 ms, a reordering window of 5 ms, a timer delay of 2 ms, and 1 ms of
    // tolerance.
    assert!((ms(27)..=ms(30)).contains(&found_after), "{found_after}");
    pipe.run_to_end(at_ms(10_000));
    let resent_after = pipe.sent_at(97)[1].since(sent[0]);
    assert!((ms(46)..ms(47)).contains(&resent_after), "the retransmission waits for its departure: {resent_after}");
}

#[test]
fn without_observed_reordering_three_segments_beyond_a_hole_indicate_a_loss() {
    let mut pipe = path(20);
    pipe.forward = delay_first([(100, ms(6))]);
    pipe.connect();
    pipe.write(segments(300));
    pipe.run_to_end(at_ms(5_000));
    assert_eq!(pipe.info().counters.retransmits, 1);
}

#[test]
fn spurious_retransmissions_widen_the_reordering_window() {
    // Every 40th segment is delayed by 60 % of the round trip, which exceeds the window of a quarter.
    let late: Vec<u64> = (1..=20).map(|i| 40 * i).collect();
    let mut pipe = path(20);
    pipe.forward = delay_first(late.iter().map(|seq| (*seq, ms(12))));
    pipe.connect();
    pipe.write(segments(900));
    pipe.run_to_end(at_ms(10_000));
    let needless = late.iter().filter(|seq| pipe.sent_at(**seq).len() > 1).count();
    let last = late[late.len() - 8..].iter().filter(|seq| pipe.sent_at(**seq).len() > 1).count();
    assert!(needless >= 2, "it takes some to learn: {needless}");
    assert_eq!(last, 0, "it has learnt: {needless} of {} were sent again", late.len());
}

#[test]
fn a_recovery_is_undone_when_d_sacks_report_every_retransmission() {
    let mut pipe = path(40);
    // The delay is long enough for the retransmission to arrive first, so no timestamp shows that the original arrived;
    // the D-SACK does.
    pipe.forward = delay_first([(100, ms(30))]);
    let states = watch_states(&mut pipe);
    pipe.connect();
    pipe.write(segments(600));
    pipe.run_to_end(at_ms(5_000));
    let info = pipe.info();
    assert!(states.borrow().contains(&CaState::Recovery));
    assert_eq!((info.counters.retransmits, info.counters.undos, info.counters.dsacks), (1, 1, 1));
    assert_eq!(info.cwnd, Packets(40));
    assert_eq!(info.ssthresh, None);
}

#[test]
fn a_recovery_is_undone_when_a_timestamp_proves_that_the_original_arrived() {
    let mut pipe = path(40);
    pipe.forward = delay_first([(100, ms(8))]);
    pipe.connect();
    pipe.write(segments(600));
    let mut undone_at = Time::ZERO;
    while undone_at == Time::ZERO {
        pipe.run_until(pipe.now + Span::from_micros(100));
        if pipe.info().counters.undos > 0 {
            undone_at = pipe.now;
        }
        assert!(pipe.now < at_ms(5_000), "it is undone");
    }
    assert_eq!(pipe.info().counters.dsacks, 0, "before the D-SACK could come");
    assert_eq!(pipe.info().ssthresh, None);
}

#[test]
fn duplication_by_the_network_changes_nothing() {
    let mut pipe = path(20);
    pipe.forward = Box::new(|_, _| Fate::Twice(ms(1)));
    pipe.connect();
    pipe.write(segments(300));
    pipe.run_to_end(at_ms(5_000));
    let info = pipe.info();
    assert_eq!((info.counters.retransmits, info.counters.recoveries), (0, 0));
    assert_eq!(info.cwnd, Packets(20));
}

#[test]
fn duplication_by_the_network_beyond_a_gap_is_distinguished_from_losses() {
    let mut pipe = path(20);
    // The third arrival beyond the gap is the copy; its ACK is the last immediate one.
    pipe.forward = Box::new(|packet, before| match packet {
        ToReceiver::Data(data) if before == 0 && data.seq.0 == 100 => Fate::Drop,
        ToReceiver::Data(data) if before == 0 && data.seq.0 == 101 => Fate::Twice(ms(1)),
        _ => Fate::Deliver,
    });
    pipe.connect();
    pipe.write(segments(300));
    pipe.run_to_end(at_ms(5_000));
    let counters = pipe.info().counters;
    assert_eq!((counters.dsacks, counters.retransmits), (1, 1));
}

#[test]
fn duplication_by_the_network_does_not_undo_a_recovery() {
    let mut pipe = path(20);
    pipe.forward = Box::new(|packet, before| match packet {
        ToReceiver::Data(data) if before == 0 && data.seq.0 == 100 => Fate::Drop,
        ToReceiver::Data(data) if before == 0 && (50..110).contains(&data.seq.0) => Fate::Twice(ms(50)),
        _ => Fate::Deliver,
    });
    pipe.connect();
    pipe.write(segments(400));
    pipe.run_to_end(at_ms(5_000));
    let info = pipe.info();
    assert_eq!((info.counters.retransmits, info.counters.undos), (1, 0));
    assert_eq!(info.ssthresh, Some(Packets(10)));
}

#[test]
fn lost_acks_cause_no_retransmissions() {
    let mut pipe = path(20);
    pipe.back = Box::new(|_, before| if before > 5 && before % 3 == 0 { Fate::Drop } else { Fate::Deliver });
    pipe.connect();
    pipe.write(segments(500));
    pipe.run_to_end(at_ms(5_000));
    let counters = pipe.info().counters;
    // If the last ACK is lost, a probe triggers another one.
    assert_eq!((counters.retransmits, counters.recoveries, counters.timeouts), (counters.tlp_probes, 0, 0));
    assert!(counters.tlp_probes <= 1, "{}", counters.tlp_probes);
}

#[test]
fn beyond_a_gap_three_acks_are_immediate_and_then_one_is_sent_per_millisecond() {
    // 40 segments per millisecond; quick mode ends long before the gap. On Linux 6.1 the receive buffer does not grow
    // for data beyond it.
    let receiver = ReceiverConfig { kernel: KernelGeneration::Linux6_1, ..ReceiverConfig::default() };
    let rate = Some(Rate::from_mbps(480));
    let mut pipe = Pipe::with(SenderConfig::default(), receiver, Fixed::new(400), rate, ms(20));
    pipe.forward = drop_first([5_000]);
    pipe.connect();
    pipe.write(segments(6_000));
    pipe.run_to_end(at_ms(10_000));
    let beyond = |ack: &AckPacket| ack.next.0 == 5_000 && !ack.sack.is_empty();
    let acks: Vec<Time> = pipe.ack_packets().filter(|(_, ack)| beyond(ack)).map(|(at, _)| at).collect();
    let gaps: Vec<u64> = acks.windows(2).map(|pair| pair[1].since(pair[0]).as_micros()).collect();
    assert!((8..=24).contains(&acks.len()), "{}", acks.len());
    assert!(gaps[..2].iter().all(|gap| *gap < 100), "{gaps:?}");
    // The fourth ACK is immediate too: the first segment beyond the gap has opened the window a last time. A
    // delayed-ACK timer that is still running, which expires at a tick, may cause one earlier ACK.
    let early: Vec<Time> = (3..gaps.len()).filter(|at| gaps[*at] < 990).map(|at| acks[at + 1]).collect();
    assert!(early.len() <= 1 && early.iter().all(|at| at.0 % 1_000_000 == 0), "{gaps:?}");
}

#[test]
fn an_ack_beyond_a_gap_reports_a_duplicate_first_and_then_the_latest_block() {
    let mut pipe = path(30);
    pipe.forward = drop_first([50, 53, 56]);
    pipe.connect();
    pipe.write(segments(200));
    pipe.run_to_end(at_ms(5_000));
    let third = pipe.ack_packets().find(|(_, ack)| ack.sack.as_slice().len() == 3).expect("three gaps").1;
    let starts: Vec<u64> = third.sack.as_slice().iter().map(|block| block.start.0).collect();
    assert_eq!((third.next.0, starts), (50, vec![57, 54, 51]));
}
