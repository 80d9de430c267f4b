//! The network of an experiment: namespaces, interfaces, queue disciplines.

pub mod probe;
pub mod sysctl;

use crate::error::Error;
use crate::protocol;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::Child;
use thalweg_plan::plan::Experiment;
use thalweg_units::Span;

/// A host of the network: a namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the namespace: `sender`, `sender-2`, `receiver`.
    pub name: String,
    /// Name of the host in the scenario.
    pub host: String,
    /// What the way of its flows is longer than the path, both directions together.
    pub extra_rtt: Span,
    /// Its address.
    pub address: Ipv4Addr,
    /// Ethernet address of its interface `eth0`.
    pub mac: [u8; 6],
    /// Places in the plan of the flows that it sends.
    pub flows: Vec<usize>,
    /// Whether it also sends the background traffic.
    pub background: bool,
}

/// What plays the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Our emulator, in a process.
    Relay,
    /// The kernel's queue disciplines.
    Netem,
}

/// A network that exists.
#[derive(Debug)]
pub struct Network {
    senders: Vec<Place>,
    receiver: Place,
    log: String,
}

impl Network {
    /// Makes namespaces, interfaces, addresses, routes and neighbours; with [`LinkKind::Netem`] queue disciplines, too.
    ///
    /// # Errors
    /// The machine refuses something, or the experiment asks for what this kind of link cannot do.
    pub fn build(_experiment: &Experiment, _link: LinkKind) -> Result<Network, Error> {
        unimplemented!()
    }

    /// The senders, in the order of their addresses.
    pub fn senders(&self) -> &[Place] {
        &self.senders
    }

    /// The receiver.
    pub fn receiver(&self) -> &Place {
        &self.receiver
    }

    /// The router's interfaces: those towards the senders, and the one towards the receiver.
    pub fn relay_ports(&self) -> (Vec<protocol::Port>, protocol::Port) {
        unimplemented!()
    }

    /// What the router has to read and to change during the experiment, if its links are queue disciplines.
    pub fn qdiscs(&self) -> protocol::Qdiscs {
        unimplemented!()
    }

    /// Kernel settings that the host in this namespace needs.
    pub fn sysctls(&self, _place: &str) -> BTreeMap<String, String> {
        unimplemented!()
    }

    /// Starts a process in a namespace, with pipes to its standard input and output, in a process group of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(&mut self, _namespace: &str, _command: &[OsString], _is_realtime: bool) -> Result<Child, Error> {
        unimplemented!()
    }

    /// Adds a line to the log.
    pub fn note(&mut self, line: &str) {
        self.log.push_str(line);
        self.log.push('\n');
    }

    /// What was done so far: a shell script, one executed command per line.
    pub fn commands(&self) -> &str {
        &self.log
    }

    /// Ends the network.
    ///
    /// # Errors
    /// Something is still there.
    pub fn close(self) -> Result<(), Error> {
        unimplemented!()
    }
}

/// Which link plays an experiment on this machine, and why, in words.
///
/// # Errors
/// The experiment asks for one that this machine cannot play.
pub fn choose_link(_experiment: &Experiment) -> Result<(LinkKind, String), Error> {
    unimplemented!()
}
