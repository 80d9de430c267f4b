//! Tests of the sender alone, with single synthetic ACKs.

use crate::common::{Fixed, at_ms, controller, ms, segments};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::{Arc, Mutex};
use thalweg_cc::{Ack, CaState, Conn, Controller, Window};
use thalweg_tcp::{
    AckPacket, Data, Info, SackBlock, SackList, Sender, SenderConfig, Seq, SynAck, Timestamp, ToReceiver, ToSender,
};
use thalweg_units::{Bytes, Packets, Span, Time};

const WINDOW: Bytes = Bytes(10_000_000);

/// A controller with a window of 100 segments that every loss reduces to two; it records ACKs.
#[derive(Debug, Default)]
struct Noting {
    governs: bool,
    /// Whether cwnd was the limit when segments were acknowledged.
    limited: Arc<Mutex<Vec<bool>>>,
    acks: Arc<Mutex<Vec<Ack>>>,
}

impl Controller for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    fn governs_recovery(&self) -> bool {
        self.governs
    }

    fn on_established(&mut self, _: &Conn, window: &mut Window, _: &mut dyn Rng) {
        window.cwnd = Packets(100);
    }

    fn on_packets_acked(&mut self, conn: &Conn, _: Packets, _: Option<Span>, _: &mut Window) {
        self.limited.lock().unwrap().push(conn.is_cwnd_limited);
    }

    fn on_ack(&mut self, _: &Conn, ack: &Ack, _: &mut Window, _: &mut dyn Rng) {
        self.acks.lock().unwrap().push(*ack);
    }

    fn ssthresh(&mut self, _: &Conn, _: &Window) -> Packets {
        Packets(2)
    }
}

struct Bench {
    sender: Sender,
    now: Time,
    rng: Xoshiro256PlusPlus,
}

impl Bench {
    /// Returns a connection with a round trip of 20 ms, at 100 ms, whose application has written `written` segments.
    fn with(controller: Box<dyn Controller>, written: u64) -> Bench {
        let sender = Sender::new(SenderConfig::default(), controller);
        let mut bench = Bench { sender, now: at_ms(80), rng: Xoshiro256PlusPlus::seed_from_u64(1) };
        bench.sender.connect(bench.now);
        bench.poll();
        bench.now += ms(20);
        let tick = Timestamp::at(at_ms(80));
        let syn_ack = ToSender::SynAck(SynAck { window: Bytes(65_535), is_ecn: false, tsval: tick, tsecr: tick });
        bench.sender.on_packet(bench.now, &syn_ack, &mut bench.rng);
        bench.poll();
        // The window of the SYN-ACK is small.
        bench.ack_at(100, 0, &[], 80);
        bench.sender.write(bench.now, segments(written));
        bench.poll();
        bench
    }

    fn poll(&mut self) -> Vec<Data> {
        let mut data = Vec::new();
        while let Some(packet) = self.sender.poll_transmit(self.now, &mut self.rng) {
            if let ToReceiver::Data(segment) = packet {
                data.push(segment);
            }
        }
        self.sender.verify();
        data
    }

    /// Delivers an ACK up to `next` with `blocks` at `now_ms` that echoes `echo_ms`. Returns the segments sent.
    fn ack_at(&mut self, now_ms: u64, next: u64, blocks: &[(u64, u64)], echo_ms: u64) -> Vec<u64> {
        self.now = at_ms(now_ms);
        let mut sack = SackList::default();
        for (start, end) in blocks {
            sack.push(SackBlock { start: Seq(*start), end: Seq(*end) });
        }
        let tsecr = Timestamp::at(at_ms(echo_ms));
        let ack = AckPacket {
            next: Seq(next),
            window: WINDOW,
            is_ece: false,
            ce_segments: 0,
            tsval: Timestamp::at(self.now),
            tsecr,
            sack,
        };
        self.sender.on_packet(self.now, &ToSender::Ack(ack), &mut self.rng);
        self.poll().iter().map(|data| data.seq.0).collect()
    }

    /// Advances to the sender's next timer. Returns the segments sent.
    fn wake(&mut self) -> Vec<u64> {
        self.now = self.sender.next_wake().expect("it waits for something");
        self.sender.on_wake(self.now, &mut self.rng);
        self.poll().iter().map(|data| data.seq.0).collect()
    }

    fn info(&self) -> Info {
        self.sender.info(self.now)
    }
}

#[test]
fn without_data_to_send_a_small_window_in_recovery_is_not_cwnd_limited() {
    let controller = Noting::default();
    let limited = Arc::clone(&controller.limited);
    let mut bench = Bench::with(Box::new(controller), 20);
    assert_eq!(bench.ack_at(120, 0, &[(1, 5)], 100), [0]);
    for end in 6..=15 {
        assert!(bench.ack_at(121, 0, &[(1, end)], 100).is_empty());
    }
    let info = bench.info();
    assert_eq!((info.ca_state, info.cwnd), (CaState::Recovery, info.inflight), "cwnd is full");
    assert!(limited.lock().unwrap().iter().all(|limited| !limited), "{limited:?}");
}

#[test]
fn a_recovery_directly_after_another_is_undone_by_its_own_retransmission() {
    let mut bench = Bench::with(Fixed::new(20), 100);
    assert_eq!(bench.ack_at(120, 0, &[(1, 5)], 100), [0, 20], "the first recovery");
    let sent = bench.ack_at(120, 0, &[(1, 20)], 100);
    assert!(sent.starts_with(&[21, 22, 23, 24]), "{sent:?}");
    // All data of the first recovery has arrived, and three segments beyond number 21.
    let sent = bench.ack_at(142, 21, &[(22, 25)], 120);
    assert!(sent.contains(&21), "the second recovery: {sent:?}");
    assert_eq!((bench.info().counters.recoveries, bench.info().counters.undos), (2, 0));
    // The original of number 21 was only delayed: it was sent at 120 ms, before the retransmission.
    bench.ack_at(143, 25, &[], 120);
    assert_eq!(bench.info().counters.undos, 1);
}

#[test]
fn a_duplicate_below_the_left_edge_of_its_own_ack_makes_no_later_segment_lost() {
    let mut bench = Bench::with(Fixed::new(20), 20);
    assert_eq!(bench.ack_at(120, 0, &[(1, 5)], 100), [0]);
    assert_eq!(bench.info().lost, Packets(1));
    // Original and copy have arrived, and the first of the two ACKs was lost. The copy does not prove that earlier
    // segments are overdue.
    bench.ack_at(145, 5, &[(0, 1)], 100);
    assert_eq!(bench.info().lost, Packets(1));
}

#[test]
fn segments_reported_by_a_reordered_ack_do_not_count_as_delivered() {
    let mut bench = Bench::with(Fixed::new(20), 20);
    bench.ack_at(120, 5, &[], 100);
    let before = bench.info();
    bench.ack_at(121, 4, &[(8, 10)], 100);
    let after = bench.info();
    assert_eq!(after.delivered, before.delivered);
    assert_eq!((after.inflight, after.ca_state), (before.inflight - Packets(2), CaState::Disorder), "it is heard");
}

#[test]
fn a_reordered_ack_does_not_count_as_a_duplicate_in_f_rto() {
    let mut bench = Bench::with(Fixed::new(20), 30);
    // The network duplicates two segments.
    bench.ack_at(120, 1, &[(0, 1)], 100);
    bench.ack_at(120, 2, &[(1, 2)], 100);
    // The loss probe, then the timeout.
    while bench.info().counters.timeouts == 0 {
        bench.wake();
    }
    let now_ms = bench.now.0 / 1_000_000;
    // Number 2 arrives, and two new segments test whether the timeout was spurious.
    assert_eq!(bench.ack_at(now_ms + 20, 3, &[], now_ms), [22, 23]);
    // A reordered ACK reports again that number 1 arrived twice.
    bench.ack_at(now_ms + 21, 2, &[(1, 2)], now_ms);
    // Originals arrive: the timeout was spurious.
    bench.ack_at(now_ms + 22, 8, &[], now_ms);
    assert_eq!(bench.info().counters.undos, 1);
}

#[test]
fn duplicates_unrelated_to_retransmissions_do_not_undo_a_recovery() {
    let mut bench = Bench::with(Fixed::new(20), 20);
    // The network duplicates three segments.
    for next in 1..4 {
        bench.ack_at(120, next, &[(next - 1, next)], 100);
    }
    let sent = bench.ack_at(120, 3, &[(5, 20)], 100);
    assert_eq!(sent, [3, 4]);
    // Both retransmissions are reported as duplicates, but there are five duplicates for two retransmissions.
    bench.ack_at(140, 4, &[(3, 4), (5, 20)], 120);
    bench.ack_at(141, 20, &[(4, 5)], 120);
    let counters = bench.info().counters;
    assert_eq!((counters.retransmits, counters.dsacks, counters.undos), (2, 5, 0));
    assert_eq!(bench.info().ssthresh, Some(Packets(10)));
}

#[test]
fn acks_without_delivery_or_loss_reach_only_controllers_that_govern_recovery() {
    for governs in [true, false] {
        let controller = Noting { governs, ..Noting::default() };
        let acks = Arc::clone(&controller.acks);
        let mut bench = Bench::with(Box::new(controller), 20);
        bench.ack_at(120, 5, &[], 100);
        assert_eq!(acks.lock().unwrap().len(), 1);
        bench.ack_at(121, 5, &[], 100);
        let acks = acks.lock().unwrap();
        assert_eq!(acks.len(), if governs { 2 } else { 1 });
        if let Some(ack) = acks.get(1) {
            assert_eq!((ack.acked, ack.lost, ack.rtt, ack.rate), (Packets(0), Packets(0), None, None));
            assert_eq!(ack.prior_inflight, Packets(15));
        }
    }
}

#[test]
fn bbr_enters_probe_rtt_on_time_even_on_an_ack_that_delivers_nothing() {
    let mut bench = Bench::with(controller("bbr"), 10);
    bench.ack_at(120, 5, &[], 100);
    let before = bench.info().cwnd;
    bench.ack_at(10_050, 5, &[], 100);
    assert_eq!(bench.info().cwnd, before);
    bench.ack_at(10_200, 5, &[], 100);
    assert_eq!(bench.info().cwnd, Packets(4));
}

#[test]
fn the_reported_rtt_is_that_of_the_oldest_segment_as_in_the_linux_srtt() {
    let mut bench = Bench::with(Box::new(Noting::default()), 1);
    bench.now += ms(5);
    bench.sender.write(bench.now, segments(1));
    bench.poll();
    bench.now += ms(20);
    let tick = Timestamp(100);
    let ack = AckPacket {
        next: Seq(2),
        window: WINDOW,
        is_ece: false,
        ce_segments: 0,
        tsval: tick,
        tsecr: tick,
        sack: SackList::default(),
    };
    let rtt = bench.sender.on_packet(bench.now, &ToSender::Ack(ack), &mut bench.rng);
    assert_eq!(rtt, Some(ms(25)), "and not the 20 ms of the second one");
}
