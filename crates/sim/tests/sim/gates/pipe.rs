//! A connection over a path that loses every n-th packet.
//!
//! The tables of RFC 9438 assume a fixed number of packets between losses. No loss model of a link does that, so this
//! module connects the simulator's endpoints and links, and drops the packets itself. The rate of the path is
//! [`HEADROOM`] times as high as the window requires, so that the round-trip time does not change.

use crate::support;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use thalweg_cc::Controller;
use thalweg_link::{Link, Packet};
use thalweg_plan::plan::{Buffer, Traces};
use thalweg_tcp::{Receiver, ReceiverConfig, Sender, SenderConfig, Seq, ToReceiver, ToSender};
use thalweg_units::{Bytes, MTU, Packets, Rate, Span, Time};

/// Capacity of the path as a multiple of the expected window; the largest window of a sawtooth is far below it.
const HEADROOM: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Carried<P>(P);

impl<P: Copy> Packet for Carried<P> {}

#[derive(Clone, Copy, Debug)]
pub struct Regular {
    pub rtt: Span,
    /// Number of packets from one loss to the next: 1 / p.
    pub period: u64,
    pub expected: f64,
    /// The window at the first loss, which ends slow start, relative to the expected window.
    pub start: f64,
    /// Number of losses until the sawtooth is periodic.
    pub settling: u64,
    /// Number of losses, from then on, over which the window is averaged.
    pub measured: u64,
}

pub fn average_window(controller: Box<dyn Controller>, path: Regular) -> f64 {
    let mut pipe = Pipe::new(controller, path);
    pipe.run_to_loss(path.settling);
    let (start, before) = (pipe.now, pipe.window_s);
    pipe.run_to_loss(path.settling + path.measured);
    assert_eq!(pipe.sender.info(pipe.now).counters.timeouts, 0, "the RFC's model knows no timeouts: {path:?}");
    (pipe.window_s - before) / pipe.now.since(start).as_secs_f64()
}

struct Pipe {
    now: Time,
    rng: Xoshiro256PlusPlus,
    sender: Sender,
    receiver: Receiver,
    forward: Link<Carried<ToReceiver>>,
    reverse: Link<Carried<ToSender>>,
    sent: u64,
    next_loss: u64,
    period: u64,
    losses: u64,
    window_s: f64,
}

impl Pipe {
    fn new(controller: Box<dyn Controller>, path: Regular) -> Pipe {
        let mut plain = support::experiment();
        let packets = (path.expected as u64).max(10) * HEADROOM;
        support::set_path(&mut plain, Rate::of(Bytes(packets * MTU.0), path.rtt), path.rtt, 1.0);
        plain.forward.buffer = Buffer::Packets { packets: Packets(u64::MAX) };
        let endless = Bytes(i32::MAX as u64);
        Pipe {
            now: Time::ZERO,
            rng: Xoshiro256PlusPlus::seed_from_u64(1),
            sender: Sender::new(SenderConfig { sndbuf_max: endless, ..Default::default() }, controller),
            receiver: Receiver::new(ReceiverConfig { rcvbuf_max: endless, ..Default::default() }),
            forward: Link::new(&plain.forward, &Traces::default(), 1).expect("the path is sound"),
            reverse: Link::new(&plain.reverse, &Traces::default(), 2).expect("the path is sound"),
            sent: 0,
            // When slow start reaches a window, it has sent twice that number of packets; the window doubles again
            // until the loss is detected.
            next_loss: (path.expected * path.start) as u64,
            period: path.period,
            losses: 0,
            window_s: 0.0,
        }
    }

    fn run_to_loss(&mut self, number: u64) {
        if self.now == Time::ZERO {
            self.sender.connect(self.now);
            self.sender.write(self.now, Bytes::MAX);
            self.transmit_pending();
        }
        while self.losses < number {
            let wakes = [
                self.forward.next_wake(),
                self.reverse.next_wake(),
                self.sender.next_wake(),
                self.receiver.next_wake(),
            ];
            let next = wakes.into_iter().flatten().min().expect("something always happens");
            self.window_s += self.sender.info(self.now).cwnd.0 as f64 * next.since(self.now).as_secs_f64();
            self.now = next;
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(Carried(packet)) = self.forward.poll(now) {
            self.receiver.on_packet(now, &packet);
            self.answer();
        }
        if self.receiver.next_wake().is_some_and(|due| due <= now) {
            self.receiver.on_wake(now);
            self.answer();
        }
        while let Some(Carried(packet)) = self.reverse.poll(now) {
            self.sender.on_packet(now, &packet, &mut self.rng);
            self.transmit_pending();
        }
        if self.sender.next_wake().is_some_and(|due| due <= now) {
            self.sender.on_wake(now, &mut self.rng);
            self.transmit_pending();
        }
    }

    fn answer(&mut self) {
        while let Some(packet) = self.receiver.poll_transmit(self.now) {
            self.reverse.send(self.now, Carried(packet), packet.wire_size(), Span::ZERO, &mut self.rng);
        }
    }

    fn transmit_pending(&mut self) {
        while let Some(packet) = self.sender.poll_transmit(self.now, &mut self.rng) {
            if !self.is_lost(&packet) {
                self.forward.send(self.now, Carried(packet), packet.wire_size(), Span::ZERO, &mut self.rng);
            }
        }
    }

    /// Whether a packet is lost: every `period`th segment, when it is first sent. Retransmissions arrive.
    fn is_lost(&mut self, packet: &ToReceiver) -> bool {
        let ToReceiver::Data(data) = packet else { return false };
        let is_first = data.seq == Seq(self.sent);
        if !is_first {
            return false;
        }
        self.sent += 1;
        if self.sent != self.next_loss {
            return false;
        }
        self.next_loss += self.period;
        self.losses += 1;
        true
    }
}
