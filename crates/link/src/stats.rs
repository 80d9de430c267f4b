//! Counters of a link.

use thalweg_units::{Bytes, Packets, Span};

/// A link's counters at one moment. Packets and copies of packets are counted alike once they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets passed to `send`.
    pub offered: Packets,
    /// Packets lost at random.
    pub lost: Packets,
    /// Copies made.
    pub duplicated: Packets,
    /// Packets dropped by the queue discipline, for any reason.
    pub dropped: Packets,
    /// Of these, packets dropped below the limit.
    pub early: Packets,
    /// Packets dropped by the policer.
    pub policed: Packets,
    /// Acknowledgements that were thinned out.
    pub thinned: Packets,
    /// Packets marked by the queue discipline (ECN); a FIFO marks none.
    pub marked: Packets,
    /// Packets whose last bit has been sent.
    pub sent_packets: Packets,
    /// Their bytes.
    pub sent_bytes: Bytes,
    /// Time that all packets which have left the queue spent in it.
    pub sojourn: Span,
    /// Packets returned by `poll`.
    pub delivered: Packets,
    /// Packets in the queue, the packet being sent not counted.
    pub backlog_packets: Packets,
    /// Their bytes.
    pub backlog_bytes: Bytes,
    /// Packets being sent, propagating, or waiting at the far end for `poll`.
    pub in_flight: Packets,
}

impl Stats {
    /// Whether every packet is accounted for: packets that entered, including copies, were lost, dropped or delivered,
    /// or are still here. Otherwise the link has a bug.
    pub fn is_balanced(&self) -> bool {
        let accounted = self.lost + self.dropped + self.policed + self.thinned + self.delivered;
        self.offered + self.duplicated == accounted + self.backlog_packets + self.in_flight
    }
}
