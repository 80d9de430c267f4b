//! A packet in a queue.

use crate::packet::Packet;
use thalweg_units::{Bytes, Span, Time};

/// A queued packet, with the decisions that were made when it was offered.
#[derive(Debug)]
pub(crate) struct Item<P> {
    pub packet: P,
    pub size: Bytes,
    /// Its number among the packets that were offered to the link, modulo 2^32.
    pub number: u32,
    /// Whether this queue has marked it.
    pub is_marked: bool,
    /// Time at which it was offered to the queue.
    pub enqueued: Time,
    /// Added to the propagation delay, within the order of packets.
    pub jitter: Span,
    /// Additional delay after that, which may reorder packets: of the flow, or of a packet that is held back.
    pub offset: Span,
}

impl<P: Packet> Item<P> {
    /// Time in the queue until `now`.
    pub fn sojourn(&self, now: Time) -> Span {
        now.since(self.enqueued)
    }

    /// Marks the packet if it is ECN-capable; returns whether it is.
    pub fn try_mark(&mut self) -> bool {
        let is_capable = self.packet.ecn().is_capable();
        if is_capable {
            self.packet.mark_ce();
            self.is_marked = true;
        }
        is_capable
    }
}
