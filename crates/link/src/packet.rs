//! Properties of packets that a link needs in addition to the size.

use thalweg_units::Ecn;

/// A packet that a link can carry.
pub trait Packet: Clone {
    /// Returns a number that identifies the flow of the packet.
    fn flow(&self) -> u64 {
        0
    }

    /// Returns the ECN field of the IP header.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Sets the ECN field to CE. Called only for packets that are ECN-capable.
    fn mark_ce(&mut self) {}

    /// Returns whether the packet is an acknowledgement without data.
    fn is_ack(&self) -> bool {
        false
    }

    /// Returns whether the packet is an acknowledgement without data that a later one of its flow supersedes: it has no
    /// SACK block and no ECN echo, and is not part of a handshake.
    fn is_plain_ack(&self) -> bool {
        false
    }

    /// Prefetches the packet into the processor's caches, because it arrives soon.
    fn prefetch(&self) {}
}

impl Packet for u64 {}
impl Packet for &str {}
