//! Propagation: delay, jitter, and packets that are held back.
//!
//! A packet that leaves the capacity at `t` (of a merged packet, its first segment) gets a *due* time, which sets its
//! position in the order of packets: `t + delay + U(0, jitter)`, or the due time of the previous packet if that is
//! later. It arrives at its due time (with aggregation: at its opportunity) plus an *offset*: the extra delay of its
//! flow, and `reorder_delay` if it is held back. Packets with the same offset do not overtake one another. If the
//! spacing of packets is shorter than the jitter, the mean delay exceeds `delay + jitter / 2`.
//!
//! If a link allows reordering, a packet's due time is `t + delay`, and its jitter is part of its offset: packets may
//! overtake one another, as with netem's jitter.

use crate::error::{LinkError, probability};
use crate::packet::Packet;
use rand_core::Rng;
use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::collections::{BTreeMap, VecDeque};
use thalweg_plan::plan;
use thalweg_units::{Packets, Probability, Span, Time};

/// Draws the delays of packets.
#[derive(Debug)]
pub(crate) struct Delay {
    delay: Span,
    jitter: Span,
    allows_reordering: bool,
    reorder: Probability,
    reorder_delay: Span,
    latest_due: Time,
}

/// Random values of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub jitter: Span,
    /// `reorder_delay` if the packet is held back, else zero.
    pub hold: Span,
}

impl Delay {
    pub fn new(config: &plan::Link) -> Result<Delay, LinkError> {
        Ok(Delay {
            delay: config.delay_ns,
            jitter: config.jitter_ns,
            allows_reordering: config.allow_reordering,
            reorder: probability("reorder", config.reorder)?,
            reorder_delay: config.reorder_delay_ns,
            latest_due: Time::ZERO,
        })
    }

    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> Drawn {
        let jitter = if self.jitter > Span::ZERO { uniform(self.jitter, rng.next_u64()) } else { Span::ZERO };
        let is_held_back = self.reorder > Probability::NEVER && self.reorder.sample(rng.next_u64());
        Drawn { jitter, hold: if is_held_back { self.reorder_delay } else { Span::ZERO } }
    }

    /// Changes the propagation delay of packets that have not left yet.
    pub fn set(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// Returns whether jitter and a decreasing delay may reorder packets.
    pub fn allows_reordering(&self) -> bool {
        self.allows_reordering
    }

    /// Returns the due time of a packet that leaves at `departure`: never earlier than that of the previous call,
    /// except on a link that allows reordering, where it is `departure` plus the delay.
    pub fn due(&mut self, departure: Time, jitter: Span) -> Time {
        if self.allows_reordering {
            return departure + self.delay;
        }
        self.latest_due = self.latest_due.max(departure + self.delay + jitter);
        self.latest_due
    }
}

/// Returns a span from 0 to `most` inclusive, uniformly distributed if `bits` are random.
fn uniform(most: Span, bits: u64) -> Span {
    Span(((u128::from(bits) * (u128::from(most.0) + 1)) >> 64) as u64)
}

/// Number of entries of the cache of lanes, a power of two.
const HINTS: usize = 64;

/// Packets in propagation.
///
/// Packets with the same offset share a ring buffer, a lane. A heap holds the head of each lane. Packets with the same
/// arrival time arrive in the order of `push`.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    lanes: Vec<Lane<P>>,
    lane_of: BTreeMap<Span, usize>,
    /// Cache of `lane_of`: for each hash of an offset, the lane that was last used.
    hints: [usize; HINTS],
    /// The head of each lane that is not empty.
    heads: BinaryHeap<Reverse<Head>>,
    /// Packets by arrival and number, on a link that allows reordering; it has no lanes.
    loose: BTreeMap<(Time, u64), P>,
    pushed: u64,
    popped: u64,
}

#[derive(Debug)]
struct Lane<P> {
    offset: Span,
    packets: VecDeque<Flying<P>>,
}

#[derive(Debug)]
struct Flying<P> {
    arrival: Time,
    number: u64,
    packet: P,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// Arrival and number as one integer, which compares without a branch.
    order: u128,
    lane: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.order == other.order
    }
}

impl Eq for Head {}

impl Head {
    fn new<P>(packet: &Flying<P>, lane: usize) -> Head {
        Head { order: u128::from(packet.arrival.0) << 64 | u128::from(packet.number), lane }
    }

    fn arrival(&self) -> Time {
        Time((self.order >> 64) as u64)
    }
}

impl<P: Packet> DelayLine<P> {
    pub fn new() -> DelayLine<P> {
        DelayLine {
            lanes: Vec::new(),
            lane_of: BTreeMap::new(),
            hints: [0; HINTS],
            heads: BinaryHeap::new(),
            loose: BTreeMap::new(),
            pushed: 0,
            popped: 0,
        }
    }

    /// Adds a packet. Due times must not decrease.
    pub fn push(&mut self, due: Time, offset: Span, packet: P) {
        let index = self.lane(offset);
        let flying = Flying { arrival: due + offset, number: self.pushed, packet };
        self.pushed += 1;
        let packets = &mut self.lanes[index].packets;
        if packets.is_empty() {
            self.heads.push(Reverse(Head::new(&flying, index)));
        }
        packets.push_back(flying);
    }

    /// Adds a packet that may overtake others.
    pub fn push_loose(&mut self, arrival: Time, packet: P) {
        self.loose.insert((arrival, self.pushed), packet);
        self.pushed += 1;
    }

    /// Returns the next packet.
    pub fn first(&self) -> Option<&P> {
        if let Some((_, packet)) = self.loose.first_key_value() {
            return Some(packet);
        }
        let Reverse(head) = self.heads.peek()?;
        self.lanes[head.lane].packets.front().map(|flying| &flying.packet)
    }

    /// Returns the arrival of the next packet.
    pub fn next_arrival(&self) -> Option<Time> {
        if let Some(((arrival, _), _)) = self.loose.first_key_value() {
            return Some(*arrival);
        }
        self.heads.peek().map(|Reverse(head)| head.arrival())
    }

    /// Removes and returns the next packet that has arrived by `now`, with its time of arrival.
    pub fn pop(&mut self, now: Time) -> Option<(Time, P)> {
        if let Some(first) = self.loose.first_entry() {
            let (arrival, _) = *first.key();
            return (arrival <= now).then(|| {
                self.popped += 1;
                (arrival, first.remove())
            });
        }
        let mut head = self.heads.peek_mut()?;
        let (arrival, index) = (head.0.arrival(), head.0.lane);
        if arrival > now {
            return None;
        }
        let packets = &mut self.lanes[index].packets;
        let flying = packets.pop_front().expect("a lane with a head has a packet");
        if let Some(soon) = packets.get(1) {
            soon.packet.prefetch();
        }
        match packets.front() {
            Some(next) => *head = Reverse(Head::new(next, index)),
            None => {
                PeekMut::pop(head);
            }
        }
        self.popped += 1;
        Some((arrival, flying.packet))
    }

    pub fn len(&self) -> Packets {
        Packets(self.pushed - self.popped)
    }

    /// Returns the index of the lane for an offset.
    fn lane(&mut self, offset: Span) -> usize {
        // Offsets are often round numbers. The upper bits of the product depend on all of their bits (Fibonacci
        // hashing).
        let hint = (offset.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HINTS.ilog2())) as usize;
        let likely = self.hints[hint];
        if self.lanes.get(likely).is_some_and(|lane| lane.offset == offset) {
            return likely;
        }
        let index = self.lane_of.get(&offset).copied().unwrap_or_else(|| self.new_lane(offset));
        self.hints[hint] = index;
        index
    }

    fn new_lane(&mut self, offset: Span) -> usize {
        let index = match self.lanes.iter().position(|lane| lane.packets.is_empty()) {
            Some(empty) => {
                self.lane_of.remove(&self.lanes[empty].offset);
                self.lanes[empty].offset = offset;
                empty
            }
            None => {
                self.lanes.push(Lane { offset, packets: VecDeque::new() });
                self.lanes.len() - 1
            }
        };
        self.lane_of.insert(offset, index);
        index
    }
}
