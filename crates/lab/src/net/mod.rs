//! The network of an experiment: namespaces, interfaces, queue disciplines.
//!
//! ```text
//!  sender   eth0 ─── s1 ┐                                     made of:  holder    the process that owns all of it
//!  sender-2 eth0 ─── s2 ┤ router ├ r0 ─── eth0 receiver                 build     namespaces, interfaces, addresses
//!                       ┘                                               netem     queue disciplines of the router
//!                                                                       qdisc     queue disciplines of hosts
//! ```
//!
//! The network consists of separate namespaces, one per host; an unprivileged user may create them if user namespaces
//! are permitted. It ends when the process that created it and the processes in it have exited. Hosts are processes in
//! these namespaces ([`Network::spawn`]) or guests, and apply their kernel settings themselves ([`Network::sysctls`]).
//!
//! [`Network::commands`] is a script that creates the same network again.

mod build;
mod choice;
pub(crate) mod holder;
mod leftovers;
mod link_kind;
mod netem;
mod offloads;
mod places;
pub mod probe;
pub(crate) mod qdisc;
mod refusal;
mod shell;
mod sys;
pub(crate) use leftovers::processes;
pub(crate) use shell::not_started;
pub(crate) use sys::set_fifo;
pub mod sysctl;

pub use choice::{choose_link, choose_link_in_virtual_time};
pub use link_kind::LinkKind;
pub use netem::TIMER_SLACK;
pub use places::{GUEST_TAP, Place, Seat};
pub(crate) use places::{HOST_INTERFACE, ROUTER};

use crate::error::Error;
use crate::protocol;
use shell::Shell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{self, Child};
use sys::Act;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_units::Span;

/// The network of an experiment. Dropping it ends its holder.
#[derive(Debug)]
pub struct Network {
    shell: Shell,
    senders: Vec<Place>,
    receiver: Place,
    qdiscs: protocol::Qdiscs,
    sysctls: BTreeMap<String, BTreeMap<String, String>>,
    /// Inodes of the network namespaces.
    identities: BTreeSet<u64>,
}

impl Network {
    /// Creates the network of an experiment whose links do not refer to traces or profiles.
    ///
    /// # Errors
    /// If the machine refuses an operation, or the kind of link does not support a feature of the experiment.
    pub fn build(experiment: &Experiment, link: LinkKind) -> Result<Network, Error> {
        Network::build_with(experiment, &Traces::default(), link, TIMER_SLACK, Seat::Namespace)
    }

    /// Like [`Network::build`], with the profiles in `traces`, with timers that are late by at most `slack`, and with
    /// senders that may run in guests.
    ///
    /// # Errors
    /// The same as [`Network::build`].
    pub fn build_with(
        experiment: &Experiment,
        traces: &Traces,
        link: LinkKind,
        slack: Span,
        seat: Seat,
    ) -> Result<Network, Error> {
        if experiment.ipv6 {
            probe::ipv6()?;
        }
        let (senders, receiver) = places::places(experiment)?;
        let shaping = match link {
            LinkKind::Relay => None,
            LinkKind::Netem => Some(netem::Shaping::new(experiment, traces, &senders, &probe::qdiscs()?, slack)?),
        };
        let mut shell = Shell::start()?;
        build::build(&mut shell, experiment, (&senders, &receiver), (link, seat))?;
        let qdiscs = match shaping {
            None => protocol::Qdiscs::default(),
            Some(shaping) => shaping.make(&mut shell)?,
        };
        let mut network =
            Network { shell, senders, receiver, qdiscs, sysctls: BTreeMap::new(), identities: BTreeSet::new() };
        network.sysctls = network.settings(experiment, link)?;
        network.identities = network.find_identities()?;
        Ok(network)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.senders.iter().chain([&self.receiver])
    }

    fn settings(
        &self,
        experiment: &Experiment,
        link: LinkKind,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
        // All new namespaces have the same values.
        let files = [c"/proc/sys/net/ipv4/tcp_rmem", c"/proc/sys/net/ipv4/tcp_wmem"];
        let answers = self.shell.holder.act(files.map(|file| Act::Read(file.into())).into()).unwrap_or_default();
        let text: String = answers.iter().flatten().map(|text| String::from_utf8_lossy(text)).collect();
        let defaults = sysctl::Defaults::parse(&text).ok_or_else(|| {
            Error::new(
                "no-sysctl",
                format!("net.ipv4.tcp_rmem and net.ipv4.tcp_wmem must be three numbers each, found {text:?}"),
                "show their values: sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
            )
        })?;
        let mut settings = BTreeMap::new();
        for place in self.places() {
            settings.insert(place.name.clone(), sysctl::of_host(experiment, place, defaults)?);
        }
        if link == LinkKind::Netem {
            let (senders, receiver) = self.relay_ports();
            let interfaces: Vec<String> = senders.into_iter().chain([receiver]).map(|port| port.interface).collect();
            settings.insert(places::ROUTER.to_owned(), sysctl::of_router(&interfaces, experiment.ipv6));
        }
        Ok(settings)
    }

    fn find_identities(&self) -> Result<BTreeSet<u64>, Error> {
        let names = self.places().map(|place| Some(place.name.as_str())).chain([Some(places::ROUTER), None]);
        let identities: Result<_, _> = names.map(|name| self.shell.holder.identity(name)).collect();
        identities.map_err(|error| {
            Error::new(
                "no-namespaces",
                format!("the namespaces that were just created cannot be found: {error}"),
                "check whether /proc is mounted without hidepid: findmnt /proc",
            )
        })
    }

    /// Returns the senders, in the order of their addresses.
    pub fn senders(&self) -> &[Place] {
        &self.senders
    }

    /// Returns the receiver.
    pub fn receiver(&self) -> &Place {
        &self.receiver
    }

    /// Returns the router's interfaces towards the senders and towards the receiver.
    pub fn relay_ports(&self) -> (Vec<protocol::Port>, protocol::Port) {
        let port = |place: &Place, interface| protocol::Port {
            interface,
            address: place.address,
            mac: place.mac,
            host: place.host.clone(),
            extra_rtt: place.extra_rtt,
        };
        let senders = self.senders.iter().zip(1..).map(|(place, number)| port(place, places::sender_interface(number)));
        (senders.collect(), port(&self.receiver, places::RECEIVER_INTERFACE.to_owned()))
    }

    /// Returns the counters that the router must read, and the commands that it must run in its namespace during the
    /// experiment.
    pub fn qdiscs(&self) -> protocol::Qdiscs {
        self.qdiscs.clone()
    }

    /// Returns the kernel settings that the host in this namespace needs.
    pub fn sysctls(&self, place: &str) -> BTreeMap<String, String> {
        self.sysctls.get(place).cloned().unwrap_or_default()
    }

    /// Starts a process in a namespace, with pipes to its standard input, output and error, in a separate process
    /// group, in the folder `/`. `is_realtime` selects SCHED_FIFO for it and its children.
    ///
    /// # Errors
    /// `no-tool`: the program does not exist. `no-process`: it cannot be started.
    pub fn spawn(&mut self, namespace: &str, command: &[OsString], is_realtime: bool) -> Result<Child, Error> {
        self.shell.spawn(namespace, command, is_realtime)
    }

    /// Like [`Network::spawn`], without priority; `prepare` may change the command before it starts.
    ///
    /// # Errors
    /// The same as [`Network::spawn`].
    pub(crate) fn spawn_with(
        &mut self,
        namespace: &str,
        command: &[OsString],
        prepare: impl FnOnce(&mut process::Command),
    ) -> Result<Child, Error> {
        self.shell.spawn_with(namespace, command, false, prepare)
    }

    /// Returns a command that runs a user's program in a namespace, with the engine's terminal, process group,
    /// environment, folder and file system.
    ///
    /// # Errors
    /// If the namespace does not exist.
    pub(crate) fn program(&self, namespace: &str, program: &OsStr) -> io::Result<process::Command> {
        self.shell.holder.program(namespace, program)
    }

    /// Returns the inodes of the network namespaces.
    pub(crate) fn identities(&self) -> &BTreeSet<u64> {
        &self.identities
    }

    /// Returns the process id of the holder.
    pub(crate) fn holder(&self) -> u32 {
        self.shell.holder.pid()
    }

    /// Returns the commands that configure a guest as a host, once it has its network interface.
    pub(crate) fn inside(&self, place: &Place) -> Vec<String> {
        build::inside(place)
    }

    /// Adds a line to [`Network::commands`].
    pub fn note(&mut self, line: &str) {
        self.shell.note(line);
    }

    /// Returns the executed commands: a shell script, one per line.
    pub fn commands(&self) -> &str {
        self.shell.script()
    }

    /// Removes the network after the processes in it have exited; waits a short time for them.
    ///
    /// # Errors
    /// `leftovers`: some processes do not exit. The holder exits nevertheless, so the namespaces end with the last of
    /// them.
    pub fn close(mut self) -> Result<(), Error> {
        let outcome = leftovers::wait(&self.identities, self.shell.holder.pid());
        self.shell.holder.end();
        outcome
    }
}
