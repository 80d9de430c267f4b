//! UDP background traffic: packets of the path's MTU at the times of [`thalweg_traffic::Source`], from a separate
//! thread.
//!
//! A packet that is late by more than [`LATEST`] is not sent, because a burst of all missed packets would differ from
//! the scenario's traffic. Such packets are counted.

use crate::clock::Clock;
use crate::error::Error;
use crate::traffic::stop_signal::{StopSignal, minimise_timer_slack};
use crate::traffic::sys;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};
use thalweg_plan::plan::Experiment;
use thalweg_trace::Histogram;
use thalweg_traffic::{Randomness, Source};
use thalweg_units::{IPV6_EXTRA, MTU, Span, Time};

const LATEST: Span = Span::from_millis(10);

/// Length of the IPv4 and UDP headers in bytes.
const HEADERS: u64 = 20 + 8;

/// Requested size of the send buffer in bytes, so that a burst fits.
const SEND_BUFFER: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Background {
    stop: StopSignal,
    thread: JoinHandle<Account>,
}

#[derive(Debug, Default)]
struct Account {
    sent: u64,
    /// Number of packets that were too late, or that the kernel did not accept.
    unsent: u64,
    lateness: Histogram,
}

impl Background {
    /// Starts the thread for one direction; `None` if the experiment has no such traffic.
    ///
    /// # Errors
    /// If the system refuses to create a socket or a thread.
    pub(super) fn start(
        experiment: &Experiment,
        up: bool,
        receiver: SocketAddr,
        clock: Clock,
    ) -> Result<Option<Background>, Error> {
        let sources = experiment.background.iter().zip(Randomness::new(experiment).sources);
        let sources = sources.filter(|(config, _)| config.up == up);
        let sources: Vec<Source> = sources.map(|(config, stream)| Source::new(config, stream)).collect();
        if sources.is_empty() {
            return Ok(None);
        }
        let failed = |error: io::Error| {
            Error::new(
                "no-background",
                format!("UDP to {receiver} cannot be sent: {error}"),
                "check the commands that created the network, in commands.log",
            )
        };
        let socket = open(receiver).map_err(|error| failed(error.into()))?;
        let headers = HEADERS + if receiver.is_ipv6() { IPV6_EXTRA.0 } else { 0 };
        let end = experiment.duration_ns.map(|duration| Time::ZERO + duration);
        let stop = StopSignal::new()?;
        let stop_of_thread = stop.clone();
        let thread = thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || send((&socket, headers), sources, end, clock, &stop_of_thread))
            .map_err(failed)?;
        Ok(Some(Background { stop, thread }))
    }

    /// Stops the thread; returns its measurements.
    pub(super) fn finish(self) -> BTreeMap<String, f64> {
        self.stop.set();
        let account = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let measured = [
            ("background_sent_packets", Some(account.sent as f64)),
            ("background_late_packets", Some(account.unsent as f64)),
            ("background_lateness_p99_us", account.lateness.quantile_us(990)),
        ];
        measured.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

fn open(receiver: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if receiver.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
    connect(&socket, &receiver)?;
    Ok(socket)
}

fn send(
    (socket, headers): (&OwnedFd, u64),
    mut sources: Vec<Source>,
    end: Option<Time>,
    clock: Clock,
    stop: &StopSignal,
) -> Account {
    minimise_timer_slack();
    let payload = &[0; (MTU.0 - HEADERS) as usize][..(MTU.0 - headers) as usize];
    let departure = |source: &mut Source| source.next_departure().filter(|at| end.is_none_or(|end| *at <= end));
    let mut next: Vec<Option<Time>> = sources.iter_mut().map(departure).collect();
    let mut account = Account::default();
    while let Some(at) = next.iter().flatten().min() {
        if !stop.sleep_until(Some(clock.monotonic_ns(*at))) {
            return account;
        }
        let now = clock.now();
        let mut due = 0;
        for (source, next) in sources.iter_mut().zip(&mut next) {
            while let Some(at) = next.filter(|at| *at <= now) {
                let late = now.since(at);
                if late <= LATEST {
                    due += 1;
                    account.lateness.add(late);
                } else {
                    account.unsent += 1;
                }
                *next = departure(source);
            }
        }
        send_now(socket, payload, due, &mut account);
    }
    account
}

fn send_now(socket: &OwnedFd, payload: &[u8], mut packets: usize, account: &mut Account) {
    while packets > 0 {
        match sys::send_repeatedly(sys::fd(socket), payload, packets) {
            Ok(sent) => {
                packets -= sent;
                account.sent += sent as u64;
            }
            // An ICMP error for an earlier packet, because the receiver has closed. This call has cleared the error.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                account.unsent += packets as u64;
                return;
            }
        }
    }
}
