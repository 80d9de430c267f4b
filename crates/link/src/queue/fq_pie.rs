//! Flow queuing with PIE, as in Linux: the sub-queues of fq_codel, each with its own PIE controller (RFC 8033).

use super::fifo::Fifo;
use super::fq_codel::OVERHEAD;
use super::item::Item;
use super::pie::{Controller, Settings};
use super::random::{Dice, FlowHash};
use super::rounds::Rounds;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Time};

/// Sub-queues under PIE.
#[derive(Debug)]
pub(crate) struct FqPie<P> {
    flows: Vec<SubQueue<P>>,
    /// Sub-queues that have packets, or whose controller is not idle.
    busy: Vec<usize>,
    rounds: Rounds,
    hash: FlowHash,
    dice: Dice,
    settings: Settings,
    quantum: Bytes,
    limit: Packets,
    memory_limit: Bytes,
    next_update: Time,
    packets: Packets,
    bytes: Bytes,
}

#[derive(Debug)]
struct SubQueue<P> {
    items: Fifo<P>,
    controller: Controller,
    is_busy: bool,
}

impl<P: Packet> FqPie<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> FqPie<P> {
        let Queue::FqPie {
            flows,
            quantum_bytes,
            memory_limit_bytes,
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn,
            ecn_prob,
        } = *queue
        else {
            panic!("not fq_pie")
        };
        let empty = || SubQueue { items: Fifo::unlimited(), controller: Controller::default(), is_busy: false };
        FqPie {
            flows: (0..flows).map(|_| empty()).collect(),
            busy: Vec::new(),
            rounds: Rounds::new(flows as usize, quantum_bytes),
            hash: FlowHash::new(seed, flows),
            dice: Dice::new(seed),
            settings: Settings::new(target_ns, tupdate_ns, alpha, beta, ecn.then_some(f64::from(ecn_prob) / 100.0)),
            quantum: quantum_bytes,
            limit: limit_packets(buffer),
            memory_limit: memory_limit_bytes,
            next_update: Time::ZERO + tupdate_ns,
            packets: Packets(0),
            bytes: Bytes::ZERO,
        }
    }

    pub fn push(&mut self, now: Time, mut item: Item<P>, tally: &mut Tally) -> bool {
        self.catch_up(now);
        let index = self.hash.bucket(item.packet.flow());
        let flow = &mut self.flows[index];
        let memory = self.bytes + item.size + Bytes(OVERHEAD.0.saturating_mul(self.packets.0 + 1));
        if self.packets >= self.limit || memory > self.memory_limit {
            flow.controller.note_drop();
            tally.drop_at_limit(item.number);
            return false;
        }
        let backlog = flow.items.bytes();
        if !flow.controller.admits(&self.settings, backlog, &mut item, tally, &mut self.dice) {
            return false;
        }
        if !flow.is_busy {
            flow.is_busy = true;
            self.busy.push(index);
        }
        self.packets += Packets(1);
        self.bytes += item.size;
        flow.items.push(item);
        if !self.rounds.is_listed(index) {
            self.rounds.activate(index, self.quantum);
        }
        true
    }

    pub fn pop(&mut self, now: Time, _tally: &mut Tally) -> Option<Item<P>> {
        self.catch_up(now);
        loop {
            let index = self.rounds.next()?;
            let flow = &mut self.flows[index];
            let Some(item) = flow.items.pop() else {
                self.rounds.retire();
                continue;
            };
            self.packets -= Packets(1);
            self.bytes -= item.size;
            flow.controller.note_departure(now, item.sojourn(now), flow.items.bytes());
            self.rounds.charge(index, item.size);
            return Some(item);
        }
    }

    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            if self.busy.is_empty() {
                let missed = now.since(self.next_update).0 / self.settings.tupdate.0 + 1;
                self.next_update += thalweg_units::Span(self.settings.tupdate.0 * missed);
                return;
            }
            self.next_update += self.settings.tupdate;
            let (flows, settings) = (&mut self.flows, &self.settings);
            self.busy.retain(|index| {
                let flow = &mut flows[*index];
                flow.controller.update(settings, flow.items.bytes());
                flow.is_busy = !(flow.controller.is_idle() && flow.items.is_empty());
                flow.is_busy
            });
        }
    }

    pub fn packets(&self) -> Packets {
        self.packets
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
