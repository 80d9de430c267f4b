//! Counters of a link.

use thalweg_units::{Bytes, Packets, Span};

/// Counters of a link at one moment. Copies are counted like other packets, except in `offered`.
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
    /// Packets dropped below the queue's limit; included in `dropped`.
    pub early: Packets,
    /// Packets dropped by the policer.
    pub policed: Packets,
    /// Acknowledgements dropped by ACK thinning.
    pub thinned: Packets,
    /// Packets marked by the queue discipline (ECN); a FIFO marks none.
    pub marked: Packets,
    /// Packets whose last bit has been sent.
    pub sent_packets: Packets,
    /// Bytes of the sent packets.
    pub sent_bytes: Bytes,
    /// Total time in the queue of all packets that have left it.
    pub sojourn: Span,
    /// Packets returned by `poll`.
    pub delivered: Packets,
    /// Packets in the queue, excluding the packet being sent.
    pub backlog_packets: Packets,
    /// Bytes in the queue, excluding the packet being sent.
    pub backlog_bytes: Bytes,
    /// Packets held by ACK thinning, being sent, propagating, or waiting at the far end for `poll`.
    pub in_flight: Packets,
}

impl Stats {
    /// Whether the packets that entered, including copies, equal those lost, dropped or delivered, or still in the
    /// link.
    pub fn is_balanced(&self) -> bool {
        let accounted = self.lost + self.dropped + self.policed + self.thinned + self.delivered;
        self.offered + self.duplicated == accounted + self.backlog_packets + self.in_flight
    }
}
