//! Fair queuing by flow, like Linux's `fq` on a router: forwarded packets have no socket, so they are not paced.
//!
//! Flows are served by deficit round robin, new ones first. A flow begins with the credit of the initial quantum.

use super::fifo::Fifo;
use super::item::Item;
use super::random::FlowHash;
use super::rounds::Rounds;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Span, Time};

/// Number of sub-queues to which flows without a socket are hashed (tc-fq(8): `orphan_mask` 1023).
const SUB_QUEUES: u32 = 1024;
/// Idle time after which the credit of a flow is refilled (tc-fq(8): `refill_delay`).
const REFILL_DELAY: Span = Span::from_millis(40);

/// Sub-queues without queue management except limits and a CE threshold.
#[derive(Debug)]
pub(crate) struct Fq<P> {
    flows: Vec<SubQueue<P>>,
    rounds: Rounds,
    hash: FlowHash,
    limit: Packets,
    flow_limit: Packets,
    quantum: Bytes,
    initial_quantum: Bytes,
    ce_threshold: Option<Span>,
    packets: Packets,
    bytes: Bytes,
}

#[derive(Debug)]
struct SubQueue<P> {
    items: Fifo<P>,
    /// Time of the latest departure, at which an empty sub-queue became idle; `None` before the first departure.
    idle_since: Option<Time>,
}

impl<P: Packet> Fq<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> Fq<P> {
        let Queue::Fq { flow_limit, quantum_bytes, initial_quantum_bytes, ce_threshold_ns } = *queue else {
            panic!("not fq")
        };
        Fq {
            flows: (0..SUB_QUEUES).map(|_| SubQueue { items: Fifo::unlimited(), idle_since: None }).collect(),
            rounds: Rounds::new(SUB_QUEUES as usize, quantum_bytes),
            hash: FlowHash::new(seed, SUB_QUEUES),
            limit: limit_packets(buffer),
            flow_limit: Packets(u64::from(flow_limit)),
            quantum: quantum_bytes,
            initial_quantum: initial_quantum_bytes,
            ce_threshold: ce_threshold_ns,
            packets: Packets(0),
            bytes: Bytes::ZERO,
        }
    }

    pub fn push(&mut self, now: Time, item: Item<P>, tally: &mut Tally) -> bool {
        let index = self.hash.bucket(item.packet.flow());
        let flow = &mut self.flows[index];
        if self.packets >= self.limit || flow.items.packets() >= self.flow_limit {
            tally.drop_at_limit(item.number);
            return false;
        }
        if !self.rounds.is_listed(index) {
            let credit = match flow.idle_since {
                None => self.initial_quantum,
                Some(since) if now.since(since) > REFILL_DELAY => self.rounds.credit(index).max(self.quantum),
                Some(_) => self.rounds.credit(index),
            };
            self.rounds.activate(index, credit);
        }
        self.packets += Packets(1);
        self.bytes += item.size;
        flow.items.push(item);
        true
    }

    pub fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<Item<P>> {
        loop {
            let index = self.rounds.next()?;
            let flow = &mut self.flows[index];
            let Some(mut item) = flow.items.pop() else {
                self.rounds.retire();
                continue;
            };
            flow.idle_since = Some(now);
            self.packets -= Packets(1);
            self.bytes -= item.size;
            self.rounds.charge(index, item.size);
            if self.ce_threshold.is_some_and(|threshold| item.sojourn(now) > threshold) {
                tally.try_mark(&mut item);
            }
            return Some(item);
        }
    }

    pub fn packets(&self) -> Packets {
        self.packets
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
