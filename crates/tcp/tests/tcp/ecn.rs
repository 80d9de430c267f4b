//! Tests of explicit congestion notification: RFC 3168, the receiver of RFC 8257, and the counts of RFC 9768.

use crate::common::*;
use std::cell::RefCell;
use std::rc::Rc;
use thalweg_cc::{CaState, EcnFeedback};
use thalweg_tcp::{Data, ReceiverConfig, SenderConfig, ToReceiver};
use thalweg_units::{Ecn, Packets, Rate, Time};

const CWND: u64 = 20;

/// Segments that are in flight together, so that their marks cause one reduction.
const ONE_WINDOW: std::ops::Range<u64> = 100..119;

/// Returns a connection with this feedback at its ends on a path of 20 ms, with a window of 20 segments until marks
/// halve it.
fn path(sender: Option<EcnFeedback>, receiver: Option<EcnFeedback>) -> Pipe {
    let sender = SenderConfig { ecn: sender, ..SenderConfig::default() };
    let receiver = ReceiverConfig { ecn: receiver, ..ReceiverConfig::default() };
    Pipe::with(sender, receiver, Fixed::new(CWND), Some(Rate::from_mbps(20)), ms(10))
}

fn classic() -> Pipe {
    path(Some(EcnFeedback::Classic), Some(EcnFeedback::Classic))
}

fn on_first(pipe: &mut Pipe, decide: impl Fn(&Data) -> Fate + 'static) {
    pipe.forward = Box::new(move |packet, before| match packet {
        ToReceiver::Data(data) if before == 0 => decide(data),
        _ => Fate::Deliver,
    });
}

fn mark(pipe: &mut Pipe, segments: impl IntoIterator<Item = u64>) {
    let marked: Vec<u64> = segments.into_iter().collect();
    on_first(pipe, move |data| if marked.contains(&data.seq.0) { Fate::Mark } else { Fate::Deliver });
}

fn transfer(pipe: &mut Pipe, count: u64) {
    pipe.connect();
    pipe.write(segments(count));
    pipe.run_to_end(at_ms(60_000));
}

type Entered = (CaState, Option<Packets>);

fn watch(pipe: &mut Pipe) -> Rc<RefCell<Vec<Entered>>> {
    let states = Rc::new(RefCell::new(vec![(CaState::Open, None)]));
    let log = Rc::clone(&states);
    pipe.watch = Box::new(move |now, sender| {
        let info = sender.info(now);
        if log.borrow().last().is_none_or(|(state, _)| *state != info.ca_state) {
            log.borrow_mut().push((info.ca_state, info.ssthresh));
        }
    });
    states
}

fn cwr(pipe: &Pipe) -> Vec<u64> {
    pipe.data().filter(|(_, data)| data.is_cwr).map(|(_, data)| data.seq.0).collect()
}

#[test]
fn new_segments_are_ect0_and_retransmissions_are_not_ecn_capable() {
    let mut pipe = classic();
    pipe.forward = drop_first([50, 60]);
    transfer(&mut pipe, 100);
    let mut next = 0;
    for (_, data) in pipe.data() {
        let expected = if data.seq.0 < next { Ecn::NotEct } else { Ecn::Ect0 };
        assert_eq!(data.ecn, expected, "segment {}", data.seq.0);
        next = next.max(data.seq.0 + 1);
    }
    assert_eq!(pipe.info().counters.retransmits, 2);
}

#[test]
fn retransmissions_of_dctcp_are_ecn_capable_as_in_linux() {
    let mut pipe = path(Some(EcnFeedback::Dctcp), Some(EcnFeedback::Dctcp));
    pipe.forward = drop_first([50]);
    transfer(&mut pipe, 100);
    assert_eq!(pipe.info().counters.retransmits, 1);
    assert!(pipe.data().all(|(_, data)| data.ecn == Ecn::Ect0));
}

#[test]
fn without_ecn_at_either_end_no_packet_is_ecn_capable_and_marks_are_ignored() {
    for (sender, receiver) in [(None, Some(EcnFeedback::Classic)), (Some(EcnFeedback::Classic), None)] {
        let mut pipe = path(sender, receiver);
        mark(&mut pipe, 50..60);
        transfer(&mut pipe, 100);
        assert!(pipe.data().all(|(_, data)| data.ecn == Ecn::NotEct && !data.is_cwr));
        assert_eq!((pipe.info().cwnd, pipe.info().counters.marked), (Packets(CWND), 0));
    }
}

#[test]
fn a_retransmitted_syn_does_not_request_ecn() {
    for (lost, expected) in [(0, Ecn::Ect0), (1, Ecn::NotEct)] {
        let mut pipe = classic();
        pipe.forward =
            Box::new(
                move |packet, before| {
                    if matches!(packet, ToReceiver::Syn(_)) && before < lost { Fate::Drop } else { Fate::Deliver }
                },
            );
        transfer(&mut pipe, 20);
        assert!(pipe.data().all(|(_, data)| data.ecn == expected), "with {lost} lost");
    }
}

#[test]
fn marks_halve_the_window_once_per_round_trip_and_nothing_is_retransmitted() {
    let mut pipe = classic();
    mark(&mut pipe, ONE_WINDOW);
    let states = watch(&mut pipe);
    transfer(&mut pipe, 300);
    let half = Some(Packets(CWND / 2));
    assert_eq!(*states.borrow(), [(CaState::Open, None), (CaState::Cwr, half), (CaState::Open, half)]);
    let counters = pipe.info().counters;
    assert_eq!((counters.retransmits, counters.undos, pipe.info().cwnd), (0, 0, Packets(CWND / 2)));
    assert_eq!(cwr(&pipe).len(), 1);
}

#[test]
fn marks_in_the_next_round_trip_reduce_again() {
    let mut pipe = classic();
    mark(&mut pipe, ONE_WINDOW.chain([150]));
    transfer(&mut pipe, 300);
    assert_eq!(pipe.info().cwnd, Packets(CWND / 4));
    assert_eq!(cwr(&pipe).len(), 2);
}

#[test]
fn acks_carry_ece_from_the_first_mark_until_cwr_arrives() {
    let mut pipe = classic();
    mark(&mut pipe, [100]);
    transfer(&mut pipe, 300);
    let cwr = cwr(&pipe);
    assert_eq!(cwr.len(), 1);
    let echoes: Vec<u64> = pipe.ack_packets().filter(|(_, ack)| ack.is_ece).map(|(_, ack)| ack.next.0).collect();
    assert_eq!(echoes.first(), Some(&101), "the mark is acknowledged at once");
    assert!(echoes.len() > 5);
    assert!(echoes.iter().all(|next| (101..=cwr[0]).contains(next)), "{echoes:?} with CWR on {}", cwr[0]);
    let plain: Vec<u64> = pipe.ack_packets().filter(|(_, ack)| !ack.is_ece).map(|(_, ack)| ack.next.0).collect();
    assert!(plain.contains(&(cwr[0] + 1)), "CWR is acknowledged at once: {plain:?}");
    assert!(plain.iter().all(|next| *next <= 100 || *next > cwr[0]));
}

#[test]
fn if_the_cwr_segment_is_lost_ece_continues_and_the_window_is_reduced_again() {
    let mut pipe = classic();
    on_first(&mut pipe, |data| match data {
        data if data.seq.0 == 100 => Fate::Mark,
        data if data.is_cwr && data.seq.0 < 130 => Fate::Drop,
        _ => Fate::Deliver,
    });
    transfer(&mut pipe, 400);
    assert_eq!(pipe.info().counters.retransmits, 1);
    assert!(cwr(&pipe).len() > 1);
    assert!(pipe.info().cwnd < Packets(CWND / 2), "{}", pipe.info().cwnd);
}

#[test]
fn a_reduction_with_marks_is_not_undone_when_nothing_was_lost() {
    let run = |is_marked: bool| {
        let mut pipe = classic();
        on_first(&mut pipe, move |data| match data.seq.0 {
            100 => Fate::Late(ms(12)),
            101 if is_marked => Fate::Mark,
            _ => Fate::Deliver,
        });
        transfer(&mut pipe, 300);
        assert!(pipe.info().counters.retransmits > 0, "it was late enough");
        pipe.info().cwnd
    };
    assert_eq!(run(false), Packets(CWND), "without a mark the reduction is undone");
    assert!(run(true) <= Packets(CWND / 2));
}

/// Returns the number of segments that a transfer counts as marked if 40 are marked: 20 alone, and 20 in a row.
fn counted(feedback: EcnFeedback) -> u64 {
    let mut pipe = path(Some(feedback), Some(feedback));
    mark(&mut pipe, (200..300).step_by(5).chain(401..421));
    transfer(&mut pipe, 600);
    pipe.info().counters.marked
}

#[test]
fn dctcp_and_accurate_ecn_count_every_mark_and_rfc_3168_overcounts() {
    assert_eq!(counted(EcnFeedback::Accurate), 40);
    assert_eq!(counted(EcnFeedback::Dctcp), 40);
    assert!(counted(EcnFeedback::Classic) > 60);
}

#[test]
fn a_dctcp_receiver_sends_a_separate_ack_when_the_mark_changes() {
    let mut pipe = path(Some(EcnFeedback::Dctcp), Some(EcnFeedback::Dctcp));
    let marked = 251..260;
    mark(&mut pipe, marked.clone());
    transfer(&mut pipe, 400);
    let mut acked = 0;
    for (_, ack) in pipe.ack_packets() {
        let covered = acked..ack.next.0;
        acked = ack.next.0;
        let marks = covered.clone().filter(|seq| marked.contains(seq)).count();
        assert!(marks == 0 || marks == covered.clone().count(), "an ACK of both kinds: {covered:?}");
        assert!(covered.is_empty() || ack.is_ece == (marks > 0), "{covered:?}");
    }
}

#[test]
fn identical_marks_without_ecn_change_nothing() {
    let sent = |pipe: &mut Pipe| -> Vec<Time> {
        mark(pipe, 100..200);
        transfer(pipe, 300);
        pipe.data().map(|(at, _)| at).collect()
    };
    let mut control = path(None, None);
    let mut plain = path(None, None);
    on_first(&mut plain, |_| Fate::Deliver);
    transfer(&mut plain, 300);
    let expected: Vec<Time> = plain.data().map(|(at, _)| at).collect();
    assert_eq!(sent(&mut control), expected);
    assert_ne!(sent(&mut classic()), expected);
}

/// Returns cwnd before the first reduction of a DCTCP connection without marks, and ssthresh after it. The transfer
/// loses the first `lost` transmissions of `segment`.
fn first_reduction(segment: u64, lost: u64) -> (u64, u64) {
    let sender = SenderConfig { ecn: Some(EcnFeedback::Dctcp), ..SenderConfig::default() };
    let receiver = ReceiverConfig { ecn: Some(EcnFeedback::Dctcp), ..ReceiverConfig::default() };
    let mut pipe = Pipe::with(sender, receiver, controller("dctcp"), Some(Rate::from_mbps(20)), ms(10));
    pipe.forward = Box::new(move |packet, before| match packet {
        ToReceiver::Data(data) if data.seq.0 == segment && before < lost => Fate::Drop,
        _ => Fate::Deliver,
    });
    let windows = Rc::new(RefCell::new((Packets::ZERO, None)));
    let log = Rc::clone(&windows);
    pipe.watch = Box::new(move |now, sender| {
        let info = sender.info(now);
        let mut log = log.borrow_mut();
        if log.1.is_none() {
            *log = (if info.ssthresh.is_none() { info.cwnd } else { log.0 }, info.ssthresh);
        }
    });
    transfer(&mut pipe, SEGMENTS);
    // A later ACK shows that a probe has repaired a loss.
    pipe.write(segments(20));
    pipe.run_to_end(at_ms(120_000));
    let (cwnd, ssthresh) = *windows.borrow();
    (cwnd.0, ssthresh.expect("it is reduced").0)
}

const SEGMENTS: u64 = 2_000;

#[test]
fn dctcp_halves_its_window_on_a_loss_and_a_timeout_and_not_on_a_loss_that_a_probe_repairs() {
    let (cwnd, ssthresh) = first_reduction(SEGMENTS / 2, 1);
    assert_eq!(ssthresh, cwnd / 2, "fast recovery");
    // Both the last segment and its probe are lost.
    let (cwnd, ssthresh) = first_reduction(SEGMENTS - 1, 2);
    assert_eq!(ssthresh, cwnd / 2, "a timeout");
    let (cwnd, ssthresh) = first_reduction(SEGMENTS - 1, 1);
    assert!(ssthresh > cwnd * 5 / 8, "a probe: cwnd {cwnd}, ssthresh {ssthresh}");
}
