//! Packets on the links.

use thalweg_tcp::{ToReceiver, ToSender};
use thalweg_units::{Bytes, Ecn, MTU};

/// A packet on either link. Data takes the forward link, acknowledgements the reverse one; for flows that go up it is the other
/// way round.
///
/// Links and hosts move it as a box: a pointer is much cheaper to move from queue to queue than a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packet {
    Data { connection: usize, packet: ToReceiver },
    Ack { connection: usize, packet: ToSender },
    Udp { source: usize },
}

impl Packet {
    /// Bytes of the IP packet.
    pub(crate) fn wire_size(&self) -> Bytes {
        match self {
            Packet::Data { packet, .. } => packet.wire_size(),
            Packet::Ack { packet, .. } => packet.wire_size(),
            Packet::Udp { .. } => MTU,
        }
    }

    /// The connection that it belongs to.
    pub(crate) fn connection(&self) -> Option<usize> {
        match self {
            Packet::Data { connection, .. } | Packet::Ack { connection, .. } => Some(*connection),
            Packet::Udp { .. } => None,
        }
    }
}

impl thalweg_link::Packet for Box<Packet> {
    fn flow(&self) -> u64 {
        match **self {
            Packet::Data { connection, .. } | Packet::Ack { connection, .. } => connection as u64,
            // The highest bit keeps UDP sources apart from connections.
            Packet::Udp { source } => (1 << 63) | source as u64,
        }
    }

    fn ecn(&self) -> Ecn {
        match &**self {
            Packet::Data { packet, .. } => packet.ecn(),
            Packet::Ack { .. } | Packet::Udp { .. } => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        if let Packet::Data { packet, .. } = &mut **self {
            packet.mark_ce();
        }
    }

    fn is_ack(&self) -> bool {
        matches!(**self, Packet::Ack { .. })
    }

    fn is_plain_ack(&self) -> bool {
        matches!(&**self, Packet::Ack { packet, .. } if packet.is_plain())
    }
}
