//! The flows and background traffic of one host at an end of the path.

use crate::protocol::Outgoing;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The sending and receiving tasks of a host.
#[derive(Clone, Debug)]
pub struct Part {
    /// Name of the host in the scenario.
    pub(super) host: String,
    /// Indices in the plan of the flows that the host sends.
    pub(super) flows: Vec<usize>,
    /// Destination of each flow's data.
    pub(super) to: BTreeMap<usize, SocketAddr>,
    /// Destination of the background traffic; `None` if the host sends none.
    pub(super) background: Option<SocketAddr>,
    /// Indices in the plan of the flows that the host receives; `None` if it does not listen.
    pub(super) receives: Option<Vec<usize>>,
    pub(super) port: u16,
}

impl Part {
    /// Returns the tasks of a host from its configuration.
    pub fn new(
        host: &str,
        sends: &[Outgoing],
        background: Option<IpAddr>,
        receives: Option<Vec<usize>>,
        port: u16,
    ) -> Part {
        let address = |to| SocketAddr::new(to, port);
        Part {
            host: host.to_owned(),
            flows: sends.iter().map(|send| send.flow).collect(),
            to: sends.iter().map(|send| (send.flow, address(send.to))).collect(),
            background: background.map(address),
            receives,
            port,
        }
    }

    pub(super) fn is_receiver(&self) -> bool {
        self.host == "receiver"
    }
}
