//! Packets on the links.

use thalweg_link::Packet;
use thalweg_tcp::{ToReceiver, ToSender};
use thalweg_units::Ecn;

/// A packet on the forward link, to the host `receiver`. An acknowledgement there is of a flow that goes up: rare, and twice as
/// large as data, so that it is kept elsewhere and data stays cheap to move.
#[derive(Clone, Debug)]
pub(crate) enum Forward {
    Data { connection: usize, packet: ToReceiver },
    Ack { connection: usize, packet: Box<ToSender> },
    Udp { source: usize },
}

/// A packet on the reverse link, from the host `receiver`. Data there is of a flow that goes up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backward {
    Ack { connection: usize, packet: ToSender },
    Data { connection: usize, packet: ToReceiver },
    Udp { source: usize },
}

impl Packet for Forward {
    fn flow(&self) -> u64 {
        match self {
            Forward::Data { connection, .. } | Forward::Ack { connection, .. } => of_connection(*connection),
            Forward::Udp { source } => of_source(*source),
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Forward::Data { packet, .. } => packet.ecn(),
            Forward::Ack { .. } | Forward::Udp { .. } => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        if let Forward::Data { packet, .. } = self {
            packet.mark_ce();
        }
    }

    fn is_plain_ack(&self) -> bool {
        matches!(self, Forward::Ack { packet, .. } if packet.is_plain())
    }
}

impl Packet for Backward {
    fn flow(&self) -> u64 {
        match self {
            Backward::Data { connection, .. } | Backward::Ack { connection, .. } => of_connection(*connection),
            Backward::Udp { source } => of_source(*source),
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Backward::Data { packet, .. } => packet.ecn(),
            Backward::Ack { .. } | Backward::Udp { .. } => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        if let Backward::Data { packet, .. } = self {
            packet.mark_ce();
        }
    }

    fn is_plain_ack(&self) -> bool {
        matches!(self, Backward::Ack { packet, .. } if packet.is_plain())
    }
}

/// Flows of connections and of UDP sources have different numbers: the highest bit is set for UDP.
fn of_connection(connection: usize) -> u64 {
    connection as u64
}

fn of_source(source: usize) -> u64 {
    (1 << 63) | source as u64
}
