//! Properties of packets that a link needs in addition to the size.

use thalweg_units::Ecn;

/// A packet that a link can carry.
pub trait Packet: Clone {
    /// A number that identifies the flow of a packet.
    fn flow(&self) -> u64 {
        0
    }

    /// The ECN field of its IP header.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Sets the ECN field to CE. Called only for packets that are ECN-capable.
    fn mark_ce(&mut self) {}

    /// Whether it is an acknowledgement without data.
    fn is_ack(&self) -> bool {
        false
    }

    /// Whether it is an acknowledgement without data that a later one of its flow replaces: no SACK, no ECN echo, no
    /// handshake.
    fn is_plain_ack(&self) -> bool {
        false
    }

    /// Starts to load the packet into the processor's caches: it arrives soon.
    fn prefetch(&self) {}
}

impl Packet for u64 {}
impl Packet for &str {}
