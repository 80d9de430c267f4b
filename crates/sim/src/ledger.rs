//! Packet accounting: every packet is delivered, dropped or in flight.

/// Counts of packets for one direction, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Packets sent by endpoints and UDP sources; segments that a router merges count as one.
    pub sent: u64,
    /// Copies made by the link.
    pub duplicated: u64,
    /// Packets delivered to the host at the other end.
    pub delivered: u64,
    /// Packets dropped by the queue, the policer or ACK thinning, or lost at random.
    pub dropped: u64,
    /// Packets waiting in a host or in the queue, or propagating.
    pub in_flight: u64,
}

impl Side {
    /// Whether every packet that entered was delivered or dropped, or is in flight.
    pub fn balances(&self) -> bool {
        self.sent + self.duplicated == self.delivered + self.dropped + self.in_flight
    }
}

/// Packet counts of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// To the host `receiver`.
    pub forward: Side,
    /// From the host `receiver`.
    pub reverse: Side,
}

impl Ledger {
    /// Whether all packets are accounted for in both directions.
    pub fn balances(&self) -> bool {
        self.forward.balances() && self.reverse.balances()
    }
}
