//! Packets on the links.

use crate::prefetch::prefetch;
use thalweg_tcp::{Data, ToReceiver, ToSender};
use thalweg_units::{Bytes, Ecn, IPV6_EXTRA, MTU};

/// A packet on either link. Data takes the forward link, acknowledgements the reverse one; for flows that go up it is
/// the other way round.
///
/// `Merged` holds at least two consecutive segments that receive offload has merged.
///
/// Links and hosts pass it in a box, because a pointer is much cheaper to move between queues than a packet.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Data { connection: usize, packet: ToReceiver },
    Merged { connection: usize, segments: Vec<Data> },
    Ack { connection: usize, packet: ToSender },
    Udp { source: usize },
}

impl Packet {
    /// Returns the size of the IP packet, or of all packets that were merged.
    pub(crate) fn wire_size(&self, is_ipv6: bool) -> Bytes {
        let extra = if is_ipv6 { IPV6_EXTRA } else { Bytes(0) };
        match self {
            Packet::Data { packet, .. } => packet.wire_size() + extra,
            Packet::Merged { segments, .. } => {
                Bytes(segments.iter().map(|it| (ToReceiver::Data(*it).wire_size() + extra).0).sum())
            }
            Packet::Ack { packet, .. } => packet.wire_size() + extra,
            Packet::Udp { .. } => MTU,
        }
    }

    /// Returns the id of its connection; `None` for UDP.
    pub(crate) fn connection(&self) -> Option<usize> {
        match self {
            Packet::Data { connection, .. } | Packet::Merged { connection, .. } | Packet::Ack { connection, .. } => {
                Some(*connection)
            }
            Packet::Udp { .. } => None,
        }
    }
}

impl thalweg_link::Packet for Box<Packet> {
    fn flow(&self) -> u64 {
        match **self {
            Packet::Data { connection, .. } | Packet::Merged { connection, .. } | Packet::Ack { connection, .. } => {
                connection as u64
            }
            // The highest bit distinguishes UDP sources from connections.
            Packet::Udp { source } => (1 << 63) | source as u64,
        }
    }

    fn ecn(&self) -> Ecn {
        match &**self {
            Packet::Data { packet, .. } => packet.ecn(),
            Packet::Merged { segments, .. } => segments[0].ecn,
            Packet::Ack { .. } | Packet::Udp { .. } => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        match &mut **self {
            Packet::Data { packet, .. } => packet.mark_ce(),
            Packet::Merged { segments, .. } => segments.iter_mut().for_each(|segment| segment.ecn = Ecn::Ce),
            Packet::Ack { .. } | Packet::Udp { .. } => {}
        }
    }

    fn is_ack(&self) -> bool {
        matches!(**self, Packet::Ack { .. })
    }

    fn is_plain_ack(&self) -> bool {
        matches!(&**self, Packet::Ack { packet, .. } if packet.is_plain())
    }

    fn prefetch(&self) {
        prefetch(&**self);
    }
}
