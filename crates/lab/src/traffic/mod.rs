//! Traffic of real hosts: what the flows and the background of a scenario are on a kernel's own TCP.
//!
//! ```text
//!  sender host                                                        receiver host
//!  sender: one loop, all connections ── connection ── transfer ──►    receiver: takes and discards
//!     agenda: who opens when      (as the simulator)
//!     timers, ports, account, rows
//!  beside it, in threads of their own:
//!     sampling: one dump of all sockets at every instant
//!     background: UDP                                        ──►
//!  iperf3: the same bulk flows, made by iperf3               ──►      iperf3 -s
//! ```
//!
//! Completion times are the kernel's (see [`connection`]), so that a loop that runs late opens connections late, which it
//! measures, and never makes a transfer look longer than it was.

mod account;
mod agenda;
mod algorithm;
mod background;
mod beside;
mod bulk;
mod connection;
mod connections;
mod iperf3;
mod limits;
mod ports;
mod receiver;
mod rows;
mod sampling;
mod sender;
mod sleeper;
mod sys;
mod timers;
mod transfer;

use crate::error::Error;
use crate::host::{Stage, Stopped};
use std::net::{Ipv4Addr, SocketAddrV4};
use thalweg_plan::plan::{Experiment, Generator};

/// Plays a sender: `flows` are the places in the plan of the flows that it sends.
///
/// # Errors
/// `unknown-cc` and `cc-not-allowed`; `too-many-connections` where descriptors run out, `no-ports` where local ports do;
/// `cannot-connect` where there is no way to the receiver; `no-tool` and `not-on-iperf3` with iperf3.
pub fn send(
    stage: &Stage<'_>,
    experiment: &Experiment,
    flows: &[usize],
    background: bool,
    receiver: (Ipv4Addr, u16),
) -> Result<Stopped, Error> {
    let receiver = SocketAddrV4::new(receiver.0, receiver.1);
    match experiment.engine.traffic {
        Generator::Builtin => sender::play(stage, experiment, flows, background, receiver),
        Generator::Iperf3 => iperf3::send(stage, experiment, flows, background, receiver),
    }
}

/// Plays the receiver, which is ready as soon as it listens.
///
/// # Errors
/// `cannot-listen` if the port is taken, `too-many-connections` where descriptors run out, `no-tool` with iperf3.
pub fn receive(stage: &Stage<'_>, experiment: &Experiment, port: u16) -> Result<Stopped, Error> {
    let servers = match experiment.engine.traffic {
        Generator::Builtin => None,
        Generator::Iperf3 => Some(iperf3::serve(experiment, port)?),
    };
    let stopped = receiver::play(stage, experiment, port);
    drop(servers);
    stopped
}
