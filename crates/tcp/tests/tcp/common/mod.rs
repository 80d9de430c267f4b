//! Two endpoints connected by a small deterministic path, for the tests of this crate.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use thalweg_cc::{Ack, Conn, Controller, RateSample, Window};
use thalweg_tcp::{AckPacket, Data, Info, Receiver, ReceiverConfig, Sender, SenderConfig, ToReceiver, ToSender};
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

pub const MSS: u64 = 1448;

pub fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

pub fn segments(count: u64) -> Bytes {
    Bytes(count * MSS)
}

pub fn controller(name: &str) -> Box<dyn Controller> {
    thalweg_cc::build(name, &BTreeMap::new()).expect("it is in the catalogue")
}

/// A controller with a fixed window, which a loss halves.
#[derive(Debug)]
pub struct Fixed {
    pub cwnd: u64,
    pub pacing_rate: Option<Rate>,
    pub samples: std::sync::Arc<std::sync::Mutex<Vec<(Time, RateSample, Ack)>>>,
}

impl Fixed {
    pub fn new(cwnd: u64) -> Box<Fixed> {
        Box::new(Fixed { cwnd, pacing_rate: None, samples: Default::default() })
    }

    pub fn paced(cwnd: u64, rate: Rate) -> Box<Fixed> {
        Box::new(Fixed { cwnd, pacing_rate: Some(rate), samples: Default::default() })
    }
}

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn paces(&self) -> bool {
        self.pacing_rate.is_some()
    }

    fn on_established(&mut self, _: &Conn, window: &mut Window, _: &mut dyn Rng) {
        window.cwnd = Packets(self.cwnd);
        if let Some(rate) = self.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _: &mut dyn Rng) {
        // After a timeout: slow start up to ssthresh.
        let target = window.ssthresh.min(Packets(self.cwnd));
        if window.cwnd < target {
            window.cwnd = (window.cwnd + ack.acked).min(target);
        }
        if let Some(sample) = ack.rate {
            self.samples.lock().unwrap().push((conn.now, sample, *ack));
        }
    }

    fn ssthresh(&mut self, _: &Conn, window: &Window) -> Packets {
        Packets((window.cwnd.0 / 2).max(2))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    /// Deliver it with a CE mark if it is ECN-capable.
    Mark,
    /// Deliver it with this additional delay.
    Late(Span),
    /// Deliver it, and a copy with this additional delay.
    Twice(Span),
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Forward(ToReceiver),
    Back(ToSender),
}

type Watch = Box<dyn FnMut(Time, &Sender)>;
type Script<P> = Box<dyn FnMut(&P, u64) -> Fate>;

/// Two endpoints and the path between them: a delay of `delay` in each direction, and to the receiver a rate of `rate`
/// with an unlimited queue.
pub struct Pipe {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    pub rng: Xoshiro256PlusPlus,
    pub sent: Vec<(Time, ToReceiver)>,
    pub acks: Vec<(Time, ToSender)>,
    pub rtts: Vec<Span>,
    /// Decides about forward packets, given the packet and the number of earlier transmissions of its segment; for
    /// packets without data, the number of packets sent before.
    pub forward: Script<ToReceiver>,
    /// Decides about reverse packets, given the packet and the number of packets sent before.
    pub back: Script<ToSender>,
    pub watch: Watch,
    /// Packets that would arrive at the receiver in this interval arrive at its end, in the order of sending.
    pub stall: Option<(Time, Time)>,
    rate: Option<Rate>,
    delay: Span,
    link_free: Time,
    events: BinaryHeap<Reverse<(Time, u64)>>,
    packets: BTreeMap<u64, Packet>,
    counter: u64,
    transmissions: BTreeMap<u64, u64>,
    steps: u64,
}

impl Pipe {
    pub fn new(controller: Box<dyn Controller>, rate: Option<Rate>, delay: Span) -> Pipe {
        Pipe::with(SenderConfig::default(), ReceiverConfig::default(), controller, rate, delay)
    }

    pub fn with(
        sender: SenderConfig,
        receiver: ReceiverConfig,
        controller: Box<dyn Controller>,
        rate: Option<Rate>,
        delay: Span,
    ) -> Pipe {
        Pipe {
            sender: Sender::new(sender, controller),
            receiver: Receiver::new(receiver),
            now: Time::ZERO,
            rng: Xoshiro256PlusPlus::seed_from_u64(1),
            sent: Vec::new(),
            acks: Vec::new(),
            rtts: Vec::new(),
            forward: Box::new(|_, _| Fate::Deliver),
            back: Box::new(|_, _| Fate::Deliver),
            watch: Box::new(|_, _| {}),
            stall: None,
            rate,
            delay,
            link_free: Time::ZERO,
            events: BinaryHeap::new(),
            packets: BTreeMap::new(),
            counter: 0,
            transmissions: BTreeMap::new(),
            steps: 0,
        }
    }

    pub fn connect(&mut self) {
        self.sender.connect(self.now);
        self.poll();
    }

    pub fn write(&mut self, size: Bytes) {
        self.sender.write(self.now, size);
        self.poll();
    }

    pub fn run_until(&mut self, end: Time) {
        self.run_while(end, |_| true);
        self.now = end;
    }

    /// Runs until everything written is acknowledged. Returns that time.
    pub fn run_to_end(&mut self, limit: Time) -> Time {
        self.run_while(limit, |pipe| pipe.sender.acked() < pipe.sender.written());
        assert_eq!(self.sender.acked(), self.sender.written(), "everything is acknowledged by {limit}");
        self.now
    }

    fn run_while(&mut self, end: Time, mut go_on: impl FnMut(&Pipe) -> bool) {
        while go_on(self) {
            let packet = self.events.peek().map(|event| event.0.0);
            let wakes = [packet, self.sender.next_wake(), self.receiver.next_wake()];
            let Some(next) = wakes.into_iter().flatten().min().filter(|next| *next <= end) else {
                return;
            };
            assert!(next >= self.now, "time goes forward: {next} after {}", self.now);
            self.now = next;
            if packet == Some(next) {
                let Reverse((_, id)) = self.events.pop().expect("it was there");
                match self.packets.remove(&id).expect("an event has its packet") {
                    Packet::Forward(packet) => self.receiver.on_packet(next, &packet),
                    Packet::Back(packet) => {
                        self.rtts.extend(self.sender.on_packet(next, &packet, &mut self.rng));
                    }
                }
            } else if self.sender.next_wake() == Some(next) {
                self.sender.on_wake(next, &mut self.rng);
            } else {
                self.receiver.on_wake(next);
            }
            self.poll();
        }
    }

    pub fn poll(&mut self) {
        let now = self.now;
        while let Some(mut packet) = self.sender.poll_transmit(now, &mut self.rng) {
            self.sent.push((now, packet));
            let before = match packet {
                ToReceiver::Data(data) => {
                    let count = self.transmissions.entry(data.seq.0).or_default();
                    *count += 1;
                    *count - 1
                }
                _ => self.sent.len() as u64 - 1,
            };
            let fate = (self.forward)(&packet, before);
            if fate == Fate::Drop {
                continue;
            }
            if fate == Fate::Mark && packet.ecn().is_capable() {
                packet.mark_ce();
            }
            let begin = self.link_free.max(now);
            let time = self.rate.map_or(Span::ZERO, |rate| rate.time_to_send(packet.wire_size()));
            self.link_free = begin + time;
            self.deliver(self.link_free + self.delay, Packet::Forward(packet), fate);
        }
        while let Some(packet) = self.receiver.poll_transmit(now) {
            let before = self.acks.len() as u64;
            self.acks.push((now, packet));
            let fate = (self.back)(&packet, before);
            if fate != Fate::Drop {
                self.deliver(now + self.delay, Packet::Back(packet), fate);
            }
        }
        // Recounting scans the complete window, so large windows are checked only at some steps.
        self.steps += 1;
        if self.sender.info(now).inflight < Packets(200) || self.steps % 64 == 0 {
            self.sender.verify();
        }
        (self.watch)(now, &self.sender);
    }

    fn deliver(&mut self, at: Time, packet: Packet, fate: Fate) {
        match fate {
            Fate::Drop => {}
            Fate::Deliver | Fate::Mark => self.push(at, packet),
            Fate::Late(by) => self.push(at + by, packet),
            Fate::Twice(by) => {
                self.push(at, packet);
                self.push(at + by, packet);
            }
        }
    }

    fn push(&mut self, at: Time, packet: Packet) {
        let at = match (self.stall, packet) {
            (Some((from, to)), Packet::Forward(_)) if (from..to).contains(&at) => to,
            _ => at,
        };
        self.packets.insert(self.counter, packet);
        self.events.push(Reverse((at, self.counter)));
        self.counter += 1;
    }

    pub fn info(&self) -> Info {
        self.sender.info(self.now)
    }

    pub fn data(&self) -> impl Iterator<Item = (Time, Data)> + '_ {
        self.sent.iter().filter_map(|(at, packet)| match packet {
            ToReceiver::Data(data) => Some((*at, *data)),
            _ => None,
        })
    }

    pub fn sent_at(&self, seq: u64) -> Vec<Time> {
        self.data().filter(|(_, data)| data.seq.0 == seq).map(|(at, _)| at).collect()
    }

    pub fn ack_packets(&self) -> impl Iterator<Item = (Time, AckPacket)> + '_ {
        self.acks.iter().filter_map(|(at, packet)| match packet {
            ToSender::Ack(ack) => Some((*at, *ack)),
            ToSender::SynAck(_) => None,
        })
    }
}

pub fn drop_first(segments: impl IntoIterator<Item = u64>) -> Script<ToReceiver> {
    drop_times(segments.into_iter().map(|seq| (seq, 1)))
}

/// Drops the given number of first transmissions of each segment.
pub fn drop_times(segments: impl IntoIterator<Item = (u64, u64)>) -> Script<ToReceiver> {
    let drops: BTreeMap<u64, u64> = segments.into_iter().collect();
    Box::new(move |packet, before| match packet {
        ToReceiver::Data(data) if drops.get(&data.seq.0).is_some_and(|times| before < *times) => Fate::Drop,
        _ => Fate::Deliver,
    })
}

pub fn delay_first(segments: impl IntoIterator<Item = (u64, Span)>) -> Script<ToReceiver> {
    let delays: BTreeMap<u64, Span> = segments.into_iter().collect();
    Box::new(move |packet, before| match packet {
        ToReceiver::Data(data) if before == 0 => delays.get(&data.seq.0).map_or(Fate::Deliver, |by| Fate::Late(*by)),
        _ => Fate::Deliver,
    })
}
