//! Flow queuing with CoDel (RFC 8290).
//!
//! Flows are hashed to sub-queues (section 4.1), which are served by deficit round robin, sparse flows first (section
//! 4.2). Each has its own CoDel state. When a limit is exceeded, packets are dropped from the head of the largest
//! sub-queue, at most `drop_batch` of them or half of its bytes (Linux: `fq_codel_drop`).

use super::control_law::{Law, State};
use super::fifo::Fifo;
use super::item::Item;
use super::random::FlowHash;
use super::rounds::Rounds;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Time};

/// Memory in addition to a packet's bytes that Linux accounts for it: headroom, `struct sk_buff` and `struct
/// skb_shared_info`.
pub(super) const OVERHEAD: Bytes = Bytes(768);

/// Sub-queues under CoDel.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    flows: Vec<SubQueue<P>>,
    rounds: Rounds,
    hash: FlowHash,
    law: Law,
    quantum: Bytes,
    limit: Packets,
    memory_limit: Bytes,
    drop_batch: u32,
    packets: Packets,
    bytes: Bytes,
}

#[derive(Debug)]
struct SubQueue<P> {
    items: Fifo<P>,
    state: State,
}

impl<P: Packet> FqCodel<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> FqCodel<P> {
        let Queue::FqCodel {
            flows,
            quantum_bytes,
            memory_limit_bytes,
            drop_batch,
            target_ns,
            interval_ns,
            ecn,
            ce_threshold_ns,
        } = *queue
        else {
            panic!("not fq_codel")
        };
        let empty = || SubQueue { items: Fifo::unlimited(), state: State::default() };
        FqCodel {
            flows: (0..flows).map(|_| empty()).collect(),
            rounds: Rounds::new(flows as usize, quantum_bytes),
            hash: FlowHash::new(seed, flows),
            law: Law { target: target_ns, interval: interval_ns, ecn, ce_threshold: ce_threshold_ns },
            quantum: quantum_bytes,
            limit: limit_packets(buffer),
            memory_limit: memory_limit_bytes,
            drop_batch,
            packets: Packets(0),
            bytes: Bytes::ZERO,
        }
    }

    pub fn push(&mut self, _now: Time, item: Item<P>, tally: &mut Tally) -> bool {
        let index = self.hash.bucket(item.packet.flow());
        self.packets += Packets(1);
        self.bytes += item.size;
        self.flows[index].items.push(item);
        if !self.rounds.is_listed(index) {
            self.rounds.activate(index, self.quantum);
        }
        let memory = self.bytes + Bytes(OVERHEAD.0.saturating_mul(self.packets.0));
        if self.packets <= self.limit && memory <= self.memory_limit {
            return true;
        }
        // The new packet is at the tail: it is dropped only if nothing remains in its sub-queue.
        self.drop_from_largest(tally);
        self.flows[index].items.packets() > Packets(0)
    }

    pub fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<Item<P>> {
        loop {
            let index = self.rounds.next()?;
            let SubQueue { items, state } = &mut self.flows[index];
            let (packets, bytes) = (&mut self.packets, &mut self.bytes);
            // As in Linux, the control law uses the backlog of all sub-queues.
            let item = state.pop(&self.law, now, tally, &mut || {
                let item = items.pop()?;
                *packets -= Packets(1);
                *bytes -= item.size;
                Some((item, *bytes))
            });
            if let Some(item) = item {
                self.rounds.charge(index, item.size);
                return Some(item);
            }
            self.rounds.retire();
        }
    }

    pub fn packets(&self) -> Packets {
        self.packets
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    fn drop_from_largest(&mut self, tally: &mut Tally) {
        let sizes = self.flows.iter().map(|flow| flow.items.bytes()).enumerate();
        let (index, size) = sizes.fold((0, Bytes::ZERO), |most, next| if next.1 > most.1 { next } else { most });
        let SubQueue { items, state } = &mut self.flows[index];
        let (mut count, mut dropped) = (0, Bytes::ZERO);
        while count < self.drop_batch && dropped.0 < size.0.div_ceil(2).max(1) {
            let Some(item) = items.pop() else { break };
            dropped += item.size;
            count += 1;
            self.packets -= Packets(1);
            self.bytes -= item.size;
            tally.drop_at_limit(item.number);
        }
        state.count_overflow(count);
    }
}
