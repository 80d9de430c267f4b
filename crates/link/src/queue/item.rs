//! A packet in a queue.

use crate::packet::Packet;
use thalweg_units::{Bytes, Span, Time};

/// A queued packet, with the decisions made when it was offered.
#[derive(Debug)]
pub(crate) struct Item<P> {
    pub packet: P,
    pub size: Bytes,
    /// Number of the packet among those offered to the link, modulo 2^32.
    pub number: u32,
    /// Whether this queue has marked the packet.
    pub is_marked: bool,
    /// Time at which the packet was offered to the link: the time for which ACK thinning holds it counts as queueing.
    pub enqueued: Time,
    /// Jitter added to the propagation delay; it reorders packets only if the link allows that.
    pub jitter: Span,
    /// Additional delay that may reorder packets: that of the flow, plus that of a packet that is held back.
    pub offset: Span,
}

impl<P: Packet> Item<P> {
    /// Returns the time in the queue until `now`.
    pub fn sojourn(&self, now: Time) -> Span {
        now.since(self.enqueued)
    }

    /// Marks the packet if it is ECN-capable. Returns whether it is.
    pub fn try_mark(&mut self) -> bool {
        let is_capable = self.packet.ecn().is_capable();
        if is_capable {
            self.packet.mark_ce();
            self.is_marked = true;
        }
        is_capable
    }
}
