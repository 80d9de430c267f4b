//! Packets on the reverse link.

use thalweg_tcp::{ToReceiver, ToSender};

/// A packet on the reverse link, from the host `receiver`. Data there is of a flow that goes up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backward {
    Ack { connection: usize, packet: ToSender },
    Data { connection: usize, packet: ToReceiver },
    Udp,
}
