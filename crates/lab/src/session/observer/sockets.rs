//! Samples the TCP connections of one namespace over time with inet_diag.
//!
//! A sample is a dump of all connections. When a connection ends between two samples, the kernel reports its last
//! counters (`SKNLGRP_INET_TCP_DESTROY` of linux/sock_diag.h).

use crate::diag::{CcInfo, Closed, Survey, Surveyed, TcpInfo};
use crate::error::Error;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use thalweg_trace::Histogram;
use thalweg_units::{Span, Time};

/// Maximum number of connections in memory; later connections are ignored.
const MAX_CONNECTIONS: usize = 10_000;

const MAX_SAMPLES: usize = 72_000 * 4;

/// A connection with its samples.
#[derive(Clone, Debug)]
pub struct Watched {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Name of the congestion control; empty if unknown.
    pub algorithm: String,
    pub info: TcpInfo,
    pub is_closed: bool,
    /// The first sample, and those that differ from the previous one in sent segments or acknowledged bytes, up to
    /// [`MAX_SAMPLES`] of the namespace.
    pub samples: Vec<(Time, TcpInfo, CcInfo)>,
    /// Histogram of the smoothed RTTs of these samples.
    pub rtts: Histogram,
}

/// The connections of a namespace.
pub struct Sockets {
    survey: Survey,
    closed: Closed,
    connections: BTreeMap<u64, Watched>,
    kept: usize,
}

impl Sockets {
    /// Prepares to sample the network namespace of this file, and starts to receive reports of closed connections.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel refuses inet_diag.
    pub fn open(namespace: &Path) -> Result<Sockets, Error> {
        let enter = || -> io::Result<()> {
            let file = File::open(namespace)?;
            Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
        };
        // A socket stays in the namespace of the thread that created it.
        let opened = thread::scope(|scope| {
            let open = || {
                enter().map_err(|error| {
                    let message = format!("the network namespace {} cannot be entered: {error}", namespace.display());
                    Error::new("no-inet-diag", message, "please report it")
                })?;
                Ok((Survey::of_all_states()?, Closed::open()?))
            };
            scope.spawn(open).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (survey, closed) = opened?;
        Ok(Sockets { survey, closed, connections: BTreeMap::new(), kept: 0 })
    }

    /// Samples every connection.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is malformed.
    pub fn sample(&mut self, at: Time) -> Result<(), Error> {
        let Sockets { survey, closed, connections, kept } = self;
        survey.dump(&mut |surveyed| take(connections, kept, at, surveyed))?;
        closed.drain(&mut |surveyed| {
            // The kernel may report a reset connection with zero counters, which would replace the last sample.
            let is_reset = surveyed.socket.info.segments == 0 && surveyed.socket.info.acked_bytes == 0;
            match connections.get_mut(&surveyed.cookie) {
                Some(connection) => {
                    connection.is_closed = true;
                    if !is_reset {
                        connection.info =
                            TcpInfo { pacing_rate_bps: connection.info.pacing_rate_bps, ..surveyed.socket.info };
                    }
                }
                None => {
                    let cookie = surveyed.cookie;
                    take(connections, kept, at, surveyed);
                    connections.get_mut(&cookie).into_iter().for_each(|connection| connection.is_closed = true);
                }
            }
        });
        Ok(())
    }

    /// Removes and returns a connection between these addresses, the one with the largest cookie.
    pub fn take(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Watched> {
        let is_it = |connection: &Watched| connection.local == local && connection.remote == remote;
        let cookie =
            self.connections.iter().rev().find(|(_, connection)| is_it(connection)).map(|(cookie, _)| *cookie)?;
        self.connections.remove(&cookie)
    }
}

fn take(connections: &mut BTreeMap<u64, Watched>, kept: &mut usize, at: Time, surveyed: Surveyed) {
    let Surveyed { cookie, algorithm, socket } = surveyed;
    if connections.len() >= MAX_CONNECTIONS && !connections.contains_key(&cookie) {
        return;
    }
    let is_new = !connections.contains_key(&cookie);
    let connection = connections.entry(cookie).or_insert_with(|| Watched {
        local: plain(socket.local),
        remote: plain(socket.remote),
        algorithm: String::new(),
        info: socket.info,
        is_closed: false,
        samples: Vec::new(),
        rtts: Histogram::default(),
    });
    let has_changed =
        (connection.info.segments, connection.info.acked_bytes) != (socket.info.segments, socket.info.acked_bytes);
    connection.info = socket.info;
    if !algorithm.is_empty() {
        connection.algorithm = algorithm;
    }
    if (is_new || has_changed) && *kept < MAX_SAMPLES {
        *kept += 1;
        connection.samples.push((at, socket.info, socket.cc));
        socket.info.srtt_us.into_iter().for_each(|srtt| connection.rtts.add(Span::from_micros(srtt)));
    }
}

fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
