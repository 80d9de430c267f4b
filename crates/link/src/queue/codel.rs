//! CoDel (controlled delay, RFC 8289): one queue under the control law.

use super::control_law::{Law, State};
use super::fifo::Fifo;
use super::item::Item;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Time};

/// A queue under CoDel.
#[derive(Debug)]
pub(crate) struct Codel<P> {
    items: Fifo<P>,
    law: Law,
    state: State,
}

impl<P: Packet> Codel<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer) -> Codel<P> {
        let Queue::Codel { target_ns, interval_ns, ecn, ce_threshold_ns } = *queue else { panic!("not codel") };
        let law = Law { target: target_ns, interval: interval_ns, ecn, ce_threshold: ce_threshold_ns };
        let limit = Buffer::Packets { packets: limit_packets(buffer) };
        Codel { items: Fifo::new(limit), law, state: State::default() }
    }

    pub fn push(&mut self, _now: Time, item: Item<P>, tally: &mut Tally) -> bool {
        let number = item.number;
        let fits = self.items.push(item);
        if !fits {
            tally.drop_at_limit(number);
        }
        fits
    }

    pub fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<Item<P>> {
        let items = &mut self.items;
        self.state.pop(&self.law, now, tally, &mut || items.pop().map(|item| (item, items.bytes())))
    }

    pub fn packets(&self) -> Packets {
        self.items.packets()
    }

    pub fn bytes(&self) -> Bytes {
        self.items.bytes()
    }
}
