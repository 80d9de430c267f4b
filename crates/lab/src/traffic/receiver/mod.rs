//! The receiver: accepts every connection and discards its data.
//!
//! Bytes are discarded in the kernel (recv(2) with MSG_TRUNC on TCP, tcp(7)), which saves the copy. Large connections
//! get a separate thread ([`bulk`]). The same port receives UDP.
//!
//! DCTCP needs a receiver that reports each change of the CE mark (RFC 8257, section 3.2). Linux does that on sockets
//! whose own algorithm is dctcp, so sockets that receive from a dctcp sender use dctcp too.

mod bulk;

use crate::error::Error;
use crate::stage::{HostReport, Stage};
use crate::traffic::Part;
use crate::traffic::socket::{algorithm, limits};
use crate::wakeup::Wakeup;
use bulk::Bulk;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, accept_with, bind, listen, recv, socket_with, sockopt,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::{self, JoinHandle};
use thalweg_plan::plan::{Experiment, Flow};

/// epoll tokens; those of connections are their indices.
const COMMANDS: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
const UDP: u64 = u64::MAX - 2;

/// Requested backlog of connections; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

const DISCARD: usize = 1 << 20;

const DCTCP: &str = "dctcp";

/// Maximum number of reads of a descriptor before others are served.
const READS_IN_A_TURN: usize = 16;
const DATAGRAMS_IN_A_TURN: usize = 256;
const ACCEPTS_IN_A_TURN: usize = 256;

/// Requested size of the UDP receive buffer in bytes.
const UDP_BUFFER: usize = 8 << 20;

/// Runs a host that only receives, until the command `stop`.
///
/// # Errors
/// If receiving cannot start or continue, or a command other than `start` or `clock` arrives first.
pub(super) fn play(stage: &Stage<'_>, experiment: &Experiment, part: &Part) -> Result<HostReport, Error> {
    let mut sink = prepare(experiment, part, stage.commands.wakeup())?;
    stage.wait_for_start()?;
    sink.run(&|| stage.commands.is_stopped())?;
    Ok(HostReport { measured: sink.finish(), untrustworthy: Vec::new() })
}

/// A receiving thread of a host that also sends.
#[derive(Debug)]
pub(super) struct Receiving {
    wakeup: Wakeup,
    thread: JoinHandle<Result<BTreeMap<String, f64>, Error>>,
}

impl Receiving {
    /// Starts the thread, which listens when this returns.
    ///
    /// # Errors
    /// If receiving cannot start.
    pub(super) fn start(experiment: &Experiment, part: &Part) -> Result<Receiving, Error> {
        let wakeup = Wakeup::open().map_err(limits::exhausted)?;
        let mut sink = prepare(experiment, part, wakeup.as_fd())?;
        let receive = move || {
            sink.run(&|| true)?;
            Ok(sink.finish())
        };
        let thread = thread::Builder::new().name("receiving".to_owned()).spawn(receive).map_err(|error| {
            Error::new(
                "no-resources",
                format!("the receiver cannot start a thread: {error}"),
                "close other programs, or raise ulimit -u",
            )
        })?;
        Ok(Receiving { wakeup, thread })
    }

    /// Stops the thread; returns its measurements.
    ///
    /// # Errors
    /// If the thread has failed.
    pub(super) fn finish(self) -> Result<BTreeMap<String, f64>, Error> {
        self.wakeup.notify();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Opens the sockets; `wakeup` becomes readable when receiving may have to end.
fn prepare(experiment: &Experiment, part: &Part, wakeup: BorrowedFd<'_>) -> Result<Sink, Error> {
    limits::prepare(experiment, part.receives.iter().flatten().copied())?;
    let receives_from_dctcp = receives_from_dctcp(experiment, part)?;
    let any: IpAddr = if experiment.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    Sink::open(wakeup, SocketAddr::new(any, part.port), receives_from_dctcp).map_err(|error| {
        Error::new(
            "cannot-listen",
            format!("cannot listen on port {}: {error}", part.port),
            "stop the program that listens there; `ss -lntup` shows it",
        )
    })
}

/// Returns whether connections with ECN come from DCTCP.
///
/// # Errors
/// If some do and others do not, or dctcp cannot be used.
fn receives_from_dctcp(experiment: &Experiment, part: &Part) -> Result<bool, Error> {
    let flows: Vec<&Flow> = part.receives.iter().flatten().map(|flow| &experiment.flows[*flow]).collect();
    let Some(dctcp) = flows.iter().find(|flow| flow.cc == DCTCP) else { return Ok(false) };
    if let Some(classic) = flows.iter().find(|flow| flow.ecn && flow.cc != DCTCP) {
        return Err(Error::new(
            "mixed-ecn",
            format!(
                "flow.{} uses dctcp and flow.{} uses ECN with {}: one receiver cannot acknowledge marks in two ways",
                dctcp.name, classic.name, classic.cc
            ),
            format!("set ecn = false for flow.{}, or use --engine sim", classic.name),
        ));
    }
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    algorithm::set(socket.map_err(limits::exhausted)?, DCTCP)?;
    Ok(true)
}

struct Sink {
    epoll: OwnedFd,
    listener: OwnedFd,
    udp: OwnedFd,
    /// Connections by index; closed ones leave `None`.
    connections: Vec<Option<Connection>>,
    bulk: Bulk,
    free: Vec<usize>,
    buffer: Vec<u8>,
    bytes: u64,
    accepted: u64,
    datagrams: u64,
}

struct Connection {
    fd: OwnedFd,
    bytes: u64,
}

impl Sink {
    fn open(wakeup: BorrowedFd<'_>, any: SocketAddr, receives_from_dctcp: bool) -> rustix::io::Result<Sink> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = if any.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let listener = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &any)?;
        if receives_from_dctcp {
            // Accepted connections inherit the algorithm from their listener.
            sockopt::set_tcp_congestion(&listener, DCTCP)?;
        }
        listen(&listener, BACKLOG)?;
        let udp = socket_with(family, SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_recv_buffer_size(&udp, UDP_BUFFER)?;
        bind(&udp, &any)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (fd, name) in [(wakeup, COMMANDS), (listener.as_fd(), LISTENER), (udp.as_fd(), UDP)] {
            epoll::add(&epoll, fd, EventData::new_u64(name), EventFlags::IN)?;
        }
        Ok(Sink {
            epoll,
            listener,
            udp,
            connections: Vec::new(),
            bulk: Bulk::default(),
            free: Vec::new(),
            buffer: vec![0; DISCARD],
            bytes: 0,
            accepted: 0,
            datagrams: 0,
        })
    }

    /// Receives until `is_stopped` returns true after a wakeup.
    fn run(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut events = Vec::with_capacity(1024);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(Error::new("no-events", format!("epoll fails: {error}"), "check the output of dmesg"));
                }
            }
            for event in &events {
                match event.data.u64() {
                    COMMANDS => {
                        if is_stopped() {
                            return Ok(());
                        }
                    }
                    LISTENER => self.accept().map_err(limits::exhausted)?,
                    UDP => self.drain_udp(),
                    place => self.drain(place as usize),
                }
            }
        }
    }

    fn finish(self) -> BTreeMap<String, f64> {
        let bytes = self.bytes + self.bulk.finish();
        let measured = [
            ("received_bytes", bytes),
            ("received_connections", self.accepted),
            ("received_datagrams", self.datagrams),
        ];
        measured.into_iter().map(|(key, value)| (key.to_owned(), value as f64)).collect()
    }

    fn accept(&mut self) -> rustix::io::Result<()> {
        for _ in 0..ACCEPTS_IN_A_TURN {
            let fd = match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => fd,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => return Err(error),
                // The connection was reset before it was accepted.
                Err(_) => continue,
            };
            self.accepted += 1;
            let place = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            epoll::add(&self.epoll, &fd, EventData::new_u64(place as u64), EventFlags::IN)?;
            self.connections[place] = Some(Connection { fd, bytes: 0 });
        }
        Ok(())
    }

    fn drain(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        for _ in 0..READS_IN_A_TURN {
            match recv(&connection.fd, &mut *self.buffer, RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return self.forget(place),
                Ok((_, discarded)) => {
                    self.bytes += discarded as u64;
                    connection.bytes += discarded as u64;
                    if connection.bytes >= bulk::WORTH {
                        return self.hand_over(place);
                    }
                    // A short read probably means that no more bytes are pending.
                    if discarded < DISCARD {
                        return;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(_) => return self.forget(place),
            }
        }
    }

    /// Hands a connection to a separate thread, if one can be started.
    fn hand_over(&mut self, place: usize) {
        let Some(Connection { fd, bytes }) = self.connections[place].take() else { return };
        let _ = epoll::delete(&self.epoll, &fd);
        match self.bulk.take(fd) {
            Ok(()) => self.free.push(place),
            Err(fd) => {
                let registration = epoll::add(&self.epoll, &fd, EventData::new_u64(place as u64), EventFlags::IN);
                self.connections[place] = registration.is_ok().then_some(Connection { fd, bytes });
            }
        }
    }

    fn forget(&mut self, place: usize) {
        self.connections[place] = None;
        self.free.push(place);
    }

    fn drain_udp(&mut self) {
        for _ in 0..DATAGRAMS_IN_A_TURN {
            match recv(&self.udp, &mut self.buffer[..1], RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                Ok(_) => self.datagrams += 1,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
