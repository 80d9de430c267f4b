//! The books: every packet is somewhere.

/// Counts of packets for one direction, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Sent by endpoints and UDP sources.
    pub sent: u64,
    /// Copies made by the link.
    pub duplicated: u64,
    /// Handed to the host at the other end.
    pub delivered: u64,
    /// Dropped by the queue, or lost at random.
    pub dropped: u64,
    /// Waiting in a host, in the queue, or on the wire.
    pub in_flight: u64,
}

impl Side {
    /// Whether all packets that entered left, were dropped, or are still inside.
    pub fn balances(&self) -> bool {
        self.sent + self.duplicated == self.delivered + self.dropped + self.in_flight
    }
}

/// The books of both directions. `sent` and `delivered` are counted by the hosts, the rest by the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// From senders to receivers.
    pub forward: Side,
    /// From receivers to senders.
    pub reverse: Side,
}

impl Ledger {
    /// Whether no packet has appeared or disappeared.
    pub fn balances(&self) -> bool {
        self.forward.balances() && self.reverse.balances()
    }
}
