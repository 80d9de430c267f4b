//! Receives the kernel's reports of destroyed TCP sockets (`SKNLGRP_INET_TCP_DESTROY` of linux/sock_diag.h).

use super::bytes::{u16_at, u32_at};
use super::sampler::{SOCK_DIAG_BY_FAMILY, refused};
use super::survey::Connection;
use crate::error::Error;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with, sockopt};
use std::os::fd::OwnedFd;

/// Bit mask of the groups of IPv4 and IPv6: SKNLGRP_INET_TCP_DESTROY is 1, SKNLGRP_INET6_TCP_DESTROY 3.
const GROUPS: u32 = 1 | 1 << 2;

const BUFFER_BYTES: usize = 1 << 20;

const DATAGRAM_BYTES: usize = 1 << 12;

const HEADER: usize = 16;

/// Receives the reports of a network namespace.
#[derive(Debug)]
pub struct Closed {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

impl Closed {
    /// Starts to receive reports.
    ///
    /// # Errors
    /// If the kernel does not support sock_diag.
    pub fn open() -> Result<Closed, Error> {
        let open = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
            // The kernel caps the size at its maximum.
            let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
            bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            Ok(socket)
        };
        let socket = open().map_err(refused)?;
        Ok(Closed { socket, buffer: vec![0; DATAGRAM_BYTES].into() })
    }

    /// Passes the reports that have arrived to `each`. Skips malformed reports; reports that did not fit in the buffer
    /// are lost.
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
