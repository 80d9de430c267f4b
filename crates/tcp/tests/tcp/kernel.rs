//! Compares the endpoints with recordings of Linux: the packets that a real sender and a real receiver received, and
//! those that they sent in response.
//!
//! `kernel/cubic-loss.{sender,receiver}` were recorded by tcpdump in a user-mode Linux 6.1.192 in virtual time (HZ =
//! 1000): eight seconds of a CUBIC flow at 20 Mbit/s, 40 ms, 1 BDP of buffer and 5 % of random loss. A line is an
//! event: a letter (`I` received, `O` sent, `S` a SYN, `A` a SYN-ACK, `E` the third packet), the time in ns, and
//! fields. Sender: `A` window tsval tsecr, `I` next window tsval tsecr blocks, `O` segment bytes. Receiver: `S` tsval,
//! `E` tsval tsecr, `I` segment offset bytes tsval tsecr `P` if pushed, `O` next window tsval tsecr blocks. Windows and
//! offsets are in bytes; segments, `next` and blocks are segment numbers.

use crate::common::controller;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use thalweg_tcp::{
    AckPacket, Data, Established, KernelGeneration, Receiver, ReceiverConfig, SackBlock, SackList, Sender,
    SenderConfig, Seq, Syn, SynAck, Timestamp, ToReceiver, ToSender,
};
use thalweg_units::{Bytes, Span, Time};

const BUFFER_MAX: Bytes = Bytes(i32::MAX as u64);

/// Tolerance of times: the kernel's clock has a resolution of microseconds, and its timers have one of milliseconds
/// with a phase that the recording determines only roughly.
const NEAR: Span = Span::from_micros(500);

struct RecordedEvent {
    kind: char,
    at: Time,
    numbers: Vec<u64>,
    rest: Vec<String>,
}

impl RecordedEvent {
    fn parse(line: &str) -> RecordedEvent {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let kind = words.next().and_then(|word| word.chars().next()).expect("an event begins with a letter");
        let mut numbers = words.clone().map_while(|word| word.parse().ok());
        let at = Time(numbers.next().expect("then comes its time"));
        let numbers: Vec<u64> = numbers.collect();
        let rest = words.skip(1 + numbers.len()).map(str::to_owned).collect();
        RecordedEvent { kind, at, numbers, rest }
    }

    fn timestamp(&self, place: usize) -> Timestamp {
        Timestamp(self.numbers[place] as u32)
    }

    fn blocks(&self) -> SackList {
        let mut list = SackList::default();
        for block in &self.rest {
            let (start, end) = block.split_once('-').expect("a block is a range");
            let seq = |text: &str| Seq(text.parse().expect("a segment's number"));
            list.push(SackBlock { start: seq(start), end: seq(end) });
        }
        list
    }
}

fn events(text: &str) -> Vec<RecordedEvent> {
    text.lines().map(RecordedEvent::parse).collect()
}

fn sends(events: &[RecordedEvent], cc: &str) -> Vec<(Time, u64)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut sender = Sender::new(
        SenderConfig { sndbuf_max: BUFFER_MAX, kernel: KernelGeneration::Linux6_1, ..Default::default() },
        controller(cc),
    );
    let mut sent = Vec::new();
    for event in events.iter().filter(|event| event.kind != 'O') {
        while let Some(due) = sender.next_wake().filter(|due| *due <= event.at) {
            sender.on_wake(due, &mut rng);
            take_data(&mut sender, due, &mut rng, &mut sent);
        }
        match event.kind {
            'S' => {
                sender.connect(event.at);
                sender.write(event.at, Bytes::MAX);
            }
            'A' => {
                let (window, tsval, tsecr) = (Bytes(event.numbers[0]), event.timestamp(1), event.timestamp(2));
                sender.on_packet(event.at, &ToSender::SynAck(SynAck { window, is_ecn: false, tsval, tsecr }), &mut rng);
            }
            'I' => {
                let ack = AckPacket {
                    next: Seq(event.numbers[0]),
                    window: Bytes(event.numbers[1]),
                    is_ece: false,
                    ce_segments: 0,
                    tsval: event.timestamp(2),
                    tsecr: event.timestamp(3),
                    sack: event.blocks(),
                };
                sender.on_packet(event.at, &ToSender::Ack(ack), &mut rng);
            }
            other => panic!("no event of a sender: {other}"),
        }
        take_data(&mut sender, event.at, &mut rng, &mut sent);
    }
    sent
}

fn take_data(sender: &mut Sender, now: Time, rng: &mut Xoshiro256PlusPlus, sent: &mut Vec<(Time, u64)>) {
    while let Some(packet) = sender.poll_transmit(now, rng) {
        if let ToReceiver::Data(data) = packet {
            sent.push((now, data.seq.0));
        }
    }
}

fn acknowledges(events: &[RecordedEvent]) -> Vec<(Time, AckPacket)> {
    let mut receiver = Receiver::new(ReceiverConfig {
        rcvbuf_max: BUFFER_MAX,
        kernel: KernelGeneration::Linux6_1,
        ..Default::default()
    });
    let mut acks = Vec::new();
    for event in events.iter().filter(|event| event.kind != 'O') {
        while let Some(due) = receiver.next_wake().filter(|due| *due <= event.at) {
            receiver.on_wake(due);
            take_acks(&mut receiver, due, &mut acks);
        }
        let packet = match event.kind {
            'S' => ToReceiver::Syn(Syn { is_ecn: false, tsval: event.timestamp(0) }),
            'E' => ToReceiver::Established(Established { tsval: event.timestamp(0), tsecr: event.timestamp(1) }),
            'I' => ToReceiver::Data(Data {
                ecn: thalweg_units::Ecn::NotEct,
                is_cwr: false,
                seq: Seq(event.numbers[0]),
                offset: Bytes(event.numbers[1]),
                len: event.numbers[2] as u32,
                is_push: event.rest[0] == "P",
                tsval: event.timestamp(3),
                tsecr: event.timestamp(4),
            }),
            other => panic!("no event of a receiver: {other}"),
        };
        receiver.on_packet(event.at, &packet);
        take_acks(&mut receiver, event.at, &mut acks);
    }
    acks
}

fn take_acks(receiver: &mut Receiver, now: Time, acks: &mut Vec<(Time, AckPacket)>) {
    while let Some(packet) = receiver.poll_transmit(now) {
        if let ToSender::Ack(ack) = packet {
            acks.push((now, ack));
        }
    }
}

fn is_near(left: Time, right: Time) -> bool {
    left.since(right).max(right.since(left)) <= NEAR
}

#[test]
fn a_cubic_sender_under_random_loss_matches_the_packets_and_times_of_linux() {
    let events = events(include_str!("kernel/cubic-loss.sender"));
    let linux: Vec<(Time, u64)> =
        events.iter().filter(|event| event.kind == 'O').map(|event| (event.at, event.numbers[0])).collect();
    let simulated = sends(&events, "cubic");
    let count = linux.len().min(simulated.len());
    assert!(count > 500 && linux.len() - count <= 10, "{} of {}", simulated.len(), linux.len());
    let other = (0..count).find(|place| simulated[*place].1 != linux[*place].1);
    assert_eq!(other, None, "the same segments in the same order");
    let late = (0..count).filter(|place| !is_near(simulated[*place].0, linux[*place].0)).count();
    assert!(late <= count / 100, "{late} of {count} left at another time");
}

#[test]
fn a_receiver_under_random_loss_matches_the_acks_and_times_of_linux() {
    let events = events(include_str!("kernel/cubic-loss.receiver"));
    let linux: Vec<&RecordedEvent> = events.iter().filter(|event| event.kind == 'O').collect();
    let simulated = acknowledges(&events);
    let is_there = |event: &&RecordedEvent| {
        let same = |(at, ack): &(Time, AckPacket)| {
            is_near(*at, event.at) && ack.next.0 == event.numbers[0] && ack.sack == event.blocks()
        };
        simulated.iter().any(same)
    };
    let matches = linux.iter().filter(|event| is_there(event)).count();
    assert!(linux.len() > 300 && simulated.len().abs_diff(linux.len()) <= 5, "{} of {}", simulated.len(), linux.len());
    assert!(matches + linux.len() / 100 >= linux.len(), "{matches} of {}", linux.len());
}
