//! ACK thinning: forwards one in N plain acknowledgements of a flow.
//!
//! Modems and Wi-Fi access points drop acknowledgements that later ones supersede (RFC 3449, section 5.2.1). The latest
//! one is held until the N-th arrives, which is forwarded, or until [`HOLD`] after the first was held, so that the last
//! acknowledgement of a transfer arrives. An acknowledgement with other information (such as SACK) is forwarded
//! immediately, and replaces the held one.

use crate::packet::Packet;
use crate::queue::Item;
use std::collections::{BTreeMap, VecDeque};
use thalweg_units::{Packets, Span, Time};

/// Maximum time for which an acknowledgement is held.
const HOLD: Span = Span::from_millis(5);

#[derive(Debug)]
pub(crate) struct Thinning<P> {
    ratio: u32,
    flows: BTreeMap<u64, Flow<P>>,
    /// Due times of held acknowledgements, with their flow and hold numbers, in order.
    deadlines: VecDeque<(Time, u64, u64)>,
    holds: u64,
    held: u64,
    /// Number of dropped acknowledgements, which later ones have superseded.
    pub thinned: Packets,
}

#[derive(Debug)]
struct Flow<P> {
    /// Number of plain acknowledgements since the last one that was forwarded.
    count: u32,
    held: Option<Item<P>>,
    /// Number of the deadline that is valid for `held`.
    hold: u64,
}

impl<P: Packet> Thinning<P> {
    pub fn new(ratio: u32) -> Thinning<P> {
        Thinning { ratio, flows: BTreeMap::new(), deadlines: VecDeque::new(), holds: 0, held: 0, thinned: Packets(0) }
    }

    /// Returns the packet if it is forwarded now; holds it otherwise.
    pub fn offer(&mut self, now: Time, item: Item<P>) -> Option<Item<P>> {
        let is_plain = item.packet.is_plain_ack();
        if !is_plain && !item.packet.is_ack() {
            return Some(item);
        }
        let id = item.packet.flow();
        let flow = self.flows.entry(id).or_insert(Flow { count: 0, held: None, hold: 0 });
        flow.count += 1;
        if !is_plain || flow.count >= self.ratio {
            flow.count = 0;
            self.discard(id);
            return Some(item);
        }
        let is_first = flow.held.replace(item).is_none();
        if is_first {
            self.holds += 1;
            self.held += 1;
            flow.hold = self.holds;
            self.deadlines.push_back((now + HOLD, id, self.holds));
        } else {
            self.thinned += Packets(1);
        }
        None
    }

    /// Returns the earliest deadline; its acknowledgement may already have been replaced by a forwarded one.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.front().map(|(at, ..)| *at)
    }

    /// Removes the earliest deadline. Returns the flow's latest held acknowledgement; `None` if a forwarded one has
    /// replaced it.
    pub fn release(&mut self) -> Option<Item<P>> {
        let (_, id, hold) = self.deadlines.pop_front()?;
        let flow = self.flows.get_mut(&id).filter(|flow| flow.hold == hold)?;
        let item = flow.held.take()?;
        flow.count = 0;
        self.held -= 1;
        Some(item)
    }

    /// Returns the number of held acknowledgements.
    pub fn held(&self) -> Packets {
        Packets(self.held)
    }

    fn discard(&mut self, id: u64) {
        if self.flows.get_mut(&id).and_then(|flow| flow.held.take()).is_some() {
            self.held -= 1;
            self.thinned += Packets(1);
        }
    }
}
