//! TCP sockets that the kernel destroys, as it reports them (`SKNLGRP_INET_TCP_DESTROY` of linux/sock_diag.h).

use super::bytes::{u16_at, u32_at};
use super::sampler::{SOCK_DIAG_BY_FAMILY, refused};
use super::survey::Connection;
use crate::error::Error;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with, sockopt};
use std::os::fd::OwnedFd;

/// Groups of IPv4 and IPv6, a bit each: SKNLGRP_INET_TCP_DESTROY is 1, SKNLGRP_INET6_TCP_DESTROY 3.
const GROUPS: u32 = 1 | 1 << 2;

/// Space for reports between two calls: 2000 of them.
const BUFFER_BYTES: usize = 1 << 20;

/// A report is some hundred bytes.
const DATAGRAM_BYTES: usize = 1 << 12;

const HEADER: usize = 16;

/// Receives the reports of a network namespace.
#[derive(Debug)]
pub struct Closed {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

impl Closed {
    /// Reports arrive from now on.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> Result<Closed, Error> {
        let open = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
            // The kernel limits the size to its maximum.
            let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
            bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            Ok(socket)
        };
        let socket = open().map_err(refused)?;
        Ok(Closed { socket, buffer: vec![0; DATAGRAM_BYTES].into() })
    }

    /// Hands over the reports that have arrived. Malformed reports are skipped, and so are those that did not fit in
    /// the buffer.
    pub fn drain(&mut self, each: &mut dyn FnMut(Connection)) {
        loop {
            let length = match recv(&self.socket, &mut *self.buffer, RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::INTR | Errno::NOBUFS) => continue,
                Err(_) => return,
            };
            let message = &self.buffer[..length];
            let is_report = u16_at(message, 4) == Some(SOCK_DIAG_BY_FAMILY);
            let end = u32_at(message, 0).map_or(0, |length| length as usize);
            let body = message.get(HEADER..end).filter(|_| is_report);
            if let Some(Ok(connection)) = body.map(Connection::parse) {
                each(connection);
            }
        }
    }
}
