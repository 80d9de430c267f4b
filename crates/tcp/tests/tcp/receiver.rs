//! Tests of the receiver alone: the ACK of each segment, and its time.

use crate::common::{MSS, at_ms, ms};
use thalweg_tcp::{Data, Established, Receiver, ReceiverConfig, Seq, Syn, Timestamp, ToReceiver, ToSender};
use thalweg_units::{Bytes, Ecn, Span, Time};

/// Number that the tests use for the first segment that they send.
const FIRST: u64 = 100;

struct Shown {
    next: u64,
    blocks: Vec<(u64, u64)>,
    tsecr: Timestamp,
}

struct Bench {
    receiver: Receiver,
    now: Time,
    /// Number of segments that precede [`FIRST`].
    before: u64,
}

impl Bench {
    /// Returns a receiver that has completed the handshake, on a path with a round trip of 20 ms.
    fn established() -> Bench {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        receiver.on_packet(at_ms(0), &ToReceiver::Syn(Syn { is_ecn: false, tsval: Timestamp(0) }));
        assert!(matches!(receiver.poll_transmit(at_ms(0)), Some(ToSender::SynAck(_))));
        let third = Established { tsval: Timestamp(20), tsecr: Timestamp(0) };
        receiver.on_packet(at_ms(20), &ToReceiver::Established(third));
        Bench { receiver, now: at_ms(20), before: FIRST }
    }

    /// Returns a receiver that has left quick mode and has no pending ACK.
    fn warm() -> Bench {
        let mut bench = Bench::established();
        for seq in 0..FIRST {
            bench.wait(ms(1));
            bench.segment(seq);
        }
        // The window has reached its maximum, except for the memory of an in-order segment while it is read.
        bench.segment(FIRST + 1);
        bench.segment(FIRST);
        bench.before += 2;
        loop {
            bench.wait(ms(1));
            bench.segment(FIRST);
            bench.before += 1;
            if bench.receiver.next_wake().is_none() {
                break;
            }
        }
        bench
    }

    fn wait(&mut self, span: Span) {
        self.now += span;
    }

    /// Delivers a full segment. Returns the ACKs that are sent immediately.
    fn segment(&mut self, seq: u64) -> Vec<Shown> {
        self.data(seq, MSS as u32, Timestamp::at(self.now))
    }

    fn data(&mut self, seq: u64, len: u32, tsval: Timestamp) -> Vec<Shown> {
        self.pushed_data(seq, len, tsval, false)
    }

    fn pushed_data(&mut self, seq: u64, len: u32, tsval: Timestamp, is_push: bool) -> Vec<Shown> {
        let data = Data { is_push, ..self.made(seq, len, tsval) };
        self.receiver.on_packet(self.now, &ToReceiver::Data(data));
        self.acks()
    }

    fn made(&self, seq: u64, len: u32, tsval: Timestamp) -> Data {
        let seq = self.before + seq - FIRST;
        Data {
            seq: Seq(seq),
            offset: Bytes(seq * MSS),
            len,
            is_push: false,
            ecn: Ecn::NotEct,
            is_cwr: false,
            tsval,
            tsecr: Timestamp::at(self.now - ms(20)),
        }
    }

    fn acks(&mut self) -> Vec<Shown> {
        let mut acks = Vec::new();
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            match packet {
                ToSender::Ack(ack) => {
                    let shown = |seq: Seq| seq.0 + FIRST - self.before;
                    let blocks = ack.sack.as_slice().iter().map(|block| (shown(block.start), shown(block.end)));
                    acks.push(Shown { next: shown(ack.next), blocks: blocks.collect(), tsecr: ack.tsecr });
                }
                ToSender::SynAck(_) => panic!("the handshake is over"),
            }
        }
        acks
    }

    fn until_it_acts(&mut self) -> (Span, Vec<Shown>) {
        let due = self.receiver.next_wake().expect("something is due");
        let waited = due.since(self.now);
        self.now = due;
        self.receiver.on_wake(due);
        (waited, self.acks())
    }
}

#[test]
fn a_retransmitted_syn_is_answered_with_the_timestamp_echo_of_the_first() {
    let mut receiver = Receiver::new(ReceiverConfig::default());
    for tick in [0, 1_000, 3_000] {
        receiver
            .on_packet(at_ms(10 + tick), &ToReceiver::Syn(Syn { is_ecn: false, tsval: Timestamp(5 + tick as u32) }));
        let answer = receiver.poll_transmit(at_ms(10 + tick));
        assert!(matches!(answer, Some(ToSender::SynAck(answer)) if answer.tsecr == Timestamp(5)), "{answer:?}");
    }
}

#[test]
fn merged_segments_are_acknowledged_by_one_ack() {
    let mut bench = Bench::warm();
    bench.wait(ms(1));
    let merged: Vec<Data> = (100..110).map(|seq| bench.made(seq, MSS as u32, Timestamp::at(bench.now))).collect();
    bench.receiver.on_merged(bench.now, &merged);
    let acks: Vec<u64> = bench.acks().iter().map(|ack| ack.next).collect();
    assert_eq!(acks, [110]);
    let acknowledged: Vec<u64> = (110..120).flat_map(|seq| bench.segment(seq)).map(|ack| ack.next).collect();
    assert_eq!(acknowledged, [112, 114, 116, 118, 120], "the same one by one");
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms() {
    let mut bench = Bench::warm();
    bench.wait(ms(1));
    assert!(bench.segment(100).is_empty());
    let (waited, acks) = bench.until_it_acts();
    assert_eq!((waited, acks[0].next), (ms(41), 101));
    assert_eq!(bench.receiver.next_wake(), None);
}

#[test]
fn a_single_segment_with_the_push_flag_is_acknowledged_immediately() {
    let mut bench = Bench::warm();
    bench.wait(ms(1));
    let tsval = Timestamp::at(bench.now);
    assert_eq!(bench.pushed_data(100, MSS as u32, tsval, true).len(), 1);
    assert_eq!(bench.receiver.next_wake(), None);
}

#[test]
fn a_stale_delayed_ack_timer_sends_a_pending_compressed_ack() {
    let mut bench = Bench::warm();
    assert!(bench.segment(100).is_empty(), "its ACK is delayed, by 41 ms");
    assert_eq!(bench.segment(101).len(), 1, "the second one's is not, but the timer goes on");
    bench.wait(Span::from_micros(40_500));
    for seq in 103..106 {
        assert_eq!(bench.segment(seq).len(), 1);
    }
    assert!(bench.segment(106).is_empty());
    let (waited, acks) = bench.until_it_acts();
    assert_eq!((waited, acks[0].blocks.as_slice()), (Span::from_micros(500), [(103, 107)].as_slice()));
}

#[test]
fn the_second_segment_is_acknowledged_immediately() {
    let mut bench = Bench::warm();
    assert!(bench.segment(100).is_empty());
    assert_eq!(bench.segment(101).len(), 1);
    assert_eq!(bench.receiver.next_wake(), None);
}

#[test]
fn a_short_segment_is_acknowledged_immediately() {
    let mut bench = Bench::warm();
    let now = Timestamp::at(bench.now);
    assert_eq!(bench.data(100, 100, now).len(), 1);
}

#[test]
fn a_pause_longer_than_a_timeout_restores_quick_acks() {
    let mut bench = Bench::warm();
    bench.wait(ms(500));
    for seq in 100..110 {
        bench.wait(ms(1));
        assert_eq!(bench.segment(seq).len(), 1, "segment {seq}");
    }
}

#[test]
fn a_pause_shorter_than_a_timeout_does_not_restore_quick_acks() {
    let mut bench = Bench::warm();
    bench.wait(ms(100));
    assert!(bench.segment(100).is_empty());
}

#[test]
fn filling_the_last_gap_is_acknowledged_immediately() {
    let mut bench = Bench::warm();
    assert_eq!(bench.segment(101).len(), 1, "beyond a gap");
    let acks = bench.segment(100);
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].next, acks[0].blocks.as_slice()), (102, [].as_slice()));
}

#[test]
fn filling_a_gap_before_another_one_is_acknowledged_immediately() {
    let mut bench = Bench::warm();
    for seq in [101, 103] {
        bench.segment(seq);
    }
    let acks = bench.segment(100);
    assert_eq!((acks[0].next, acks[0].blocks.as_slice()), (102, [(103, 104)].as_slice()));
}

#[test]
fn the_most_recently_changed_sack_block_comes_first() {
    let mut bench = Bench::warm();
    bench.segment(101);
    bench.segment(105);
    let acks = bench.segment(102);
    assert_eq!(acks[0].blocks, [(101, 103), (105, 106)]);
}

#[test]
fn adjacent_sack_blocks_are_merged() {
    let mut bench = Bench::warm();
    bench.segment(101);
    bench.segment(103);
    let acks = bench.segment(102);
    assert_eq!(acks[0].blocks, [(101, 104)]);
}

#[test]
fn a_duplicate_is_reported_once_before_the_sack_blocks() {
    let mut bench = Bench::warm();
    bench.segment(101);
    let acks = bench.segment(50);
    assert_eq!(acks[0].blocks, [(50, 51), (101, 102)]);
    let acks = bench.segment(102);
    assert_eq!(acks[0].blocks, [(101, 103)]);
    let acks = bench.segment(101);
    assert_eq!(acks[0].blocks, [(101, 102), (101, 103)], "beyond the gap too");
}

#[test]
fn a_duplicate_that_its_own_ack_did_not_report_is_not_reported_later() {
    let mut bench = Bench::warm();
    for seq in 101..104 {
        assert_eq!(bench.segment(seq).len(), 1);
    }
    // The ACK is compressed, and another segment arrives before it is sent.
    assert!(bench.segment(102).is_empty());
    assert!(bench.segment(104).is_empty());
    let (_, acks) = bench.until_it_acts();
    assert_eq!(acks[0].blocks, [(101, 105)]);
}

#[test]
fn after_a_duplicate_sixteen_acks_are_quick_including_its_own() {
    let mut bench = Bench::warm();
    assert_eq!(bench.segment(50).len(), 1);
    let quick = (100..140).take_while(|seq| !bench.segment(*seq).is_empty()).count();
    assert_eq!(quick, 15);
}

#[test]
fn the_timestamp_that_moved_the_left_edge_is_echoed() {
    let mut bench = Bench::warm();
    // The timestamp of the first of the two segments that the last ACK covers.
    let tick = Timestamp::at(bench.now - ms(1));
    bench.wait(ms(5));
    let acks = bench.segment(101);
    assert_eq!(acks[0].tsecr, tick, "a segment beyond a gap moves nothing");
    let filled_at = Timestamp::at(bench.now);
    let acks = bench.segment(100);
    assert_eq!(acks[0].tsecr, filled_at);
}

#[test]
fn a_segment_with_an_older_timestamp_is_rejected_by_paws() {
    let mut bench = Bench::warm();
    let old = Timestamp::at(bench.now);
    bench.wait(ms(5));
    bench.segment(100);
    bench.segment(101);
    let acks = bench.data(102, MSS as u32, old);
    assert_eq!((acks.len(), acks[0].next), (1, 102), "PAWS");
}

#[test]
fn a_compressed_ack_is_sent_after_a_twentieth_of_the_rtt() {
    let mut bench = Bench::warm();
    for seq in 101..104 {
        assert_eq!(bench.segment(seq).len(), 1);
    }
    assert!(bench.segment(104).is_empty());
    assert!(bench.segment(105).is_empty());
    let (waited, acks) = bench.until_it_acts();
    assert_eq!((waited, acks.len()), (ms(1), 1));
    assert_eq!(acks[0].blocks, [(101, 106)]);
}

#[test]
fn a_compressed_ack_covers_45_segments() {
    let mut bench = Bench::warm();
    let sent: Vec<u64> = (101..200).filter(|seq| !bench.segment(*seq).is_empty()).collect();
    assert_eq!(sent, [101, 102, 103, 148, 193]);
}
