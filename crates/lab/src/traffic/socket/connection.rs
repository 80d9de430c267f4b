//! A TCP connection of the generator: a non-blocking socket for writing.
//!
//! The end of a transfer is the time at which the kernel received the acknowledgement of its last byte: the last write
//! requests a timestamp (SO_TIMESTAMPING with TX_ACK), which arrives in the error queue. It is exact even if the loop
//! runs late. Timestamps are enabled once the connection is established and before its first byte, because kernels
//! without OPT_ID_TCP (Linux 6.2) number the bytes from there. If the kernel refuses timestamps, and for flows that
//! stop during a transfer, the number of unacknowledged bytes is polled instead.
//!
//! Nagle's algorithm is off, so that the last, short segment of a transfer leaves immediately. MSG_MORE on the other
//! writes prevents short segments before it.

use crate::clock::{Clock, monotonic_ns};
use crate::diag::{TcpInfo, tcp_info};
use crate::error::Error;
use crate::traffic::socket::transfer::{End, Transfer};
use crate::traffic::socket::{algorithm, limits};
use crate::traffic::sys;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, send, socket_with, sockopt};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use thalweg_plan::plan::Flow;
use thalweg_traffic::Message;
use thalweg_units::Time;

/// Maximum number of bytes of one write.
const CHUNK: usize = 256 << 10;

/// Maximum number of writes before other connections are served.
const WRITES_IN_A_TURN: usize = 8;

static PAYLOAD: [u8; CHUNK] = [0; CHUNK];

#[derive(Debug)]
pub(in crate::traffic) struct Connection {
    /// Index of the series that opened it.
    pub(in crate::traffic) series: usize,
    pub(in crate::traffic) number: u64,
    /// The transfer in progress; `None` between transfers.
    pub(in crate::traffic) transfer: Option<Transfer>,
    /// Messages after that transfer, and the offsets of their ends in the stream.
    behind: VecDeque<(Message, u64)>,
    /// Numbers of bytes with their unused timestamps, in the order of the bytes.
    stamps: VecDeque<(u32, Time)>,
    pub(in crate::traffic) transfers_ended: u64,
    /// Whether [`Connection::stop`] was called.
    pub(in crate::traffic) is_stopped: bool,
    /// Whether a later poll is already scheduled.
    pub(in crate::traffic) is_watched: bool,
    /// Whether the loop waits for writability.
    pub(in crate::traffic) waits_for_room: bool,
    fd: OwnedFd,
    is_connecting: bool,
    has_stamps: bool,
    /// Number of bytes of the stream that the kernel has accepted.
    written: u64,
    syn_retransmits: u64,
}

impl Connection {
    /// Creates an unconnected socket with the congestion control of its flow.
    ///
    /// # Errors
    /// If the kernel refuses the socket, its algorithm or pacing.
    pub(in crate::traffic) fn new(
        series: usize,
        number: u64,
        flow: &Flow,
        first: Transfer,
        is_ipv6: bool,
    ) -> Result<Connection, Error> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = if is_ipv6 { AddressFamily::INET6 } else { AddressFamily::INET };
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(limits::exhausted)?;
        algorithm::set(&fd, &flow.cc)?;
        if flow.paced {
            sys::pace(fd.as_fd()).map_err(|error| {
                let message = format!("flow {}: the kernel cannot pace its connection: {error}", flow.name);
                Error::new("not-paced", message, "remove flow.paced from the scenario, or use --engine sim")
            })?;
        }
        // If the call fails, the last segment of a transfer may be delayed.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        Ok(Connection {
            series,
            number,
            transfer: Some(first),
            behind: VecDeque::new(),
            stamps: VecDeque::new(),
            transfers_ended: 0,
            is_stopped: false,
            is_watched: false,
            waits_for_room: true,
            fd,
            is_connecting: true,
            has_stamps: false,
            written: 0,
            syn_retransmits: 0,
        })
    }

    /// Starts the handshake.
    ///
    /// # Errors
    /// The error of connect(2).
    pub(in crate::traffic) fn connect(&self, receiver: SocketAddr) -> Result<(), Errno> {
        match connect(&self.fd, &receiver) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(in crate::traffic) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the local port; `None` before it is assigned.
    pub(in crate::traffic) fn local_port(&self) -> Option<u16> {
        let address = rustix::net::getsockname(&self.fd).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.port()).filter(|port| *port != 0)
    }

    /// Returns whether [`Connection::on_established`] was not yet called.
    pub(in crate::traffic) fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// Returns whether timestamps of acknowledgements are enabled.
    pub(in crate::traffic) fn has_stamps(&self) -> bool {
        self.has_stamps
    }

    pub(in crate::traffic) fn syn_retransmits(&self) -> u64 {
        self.syn_retransmits
    }

    pub(in crate::traffic) fn on_established(&mut self) {
        self.is_connecting = false;
        self.has_stamps = sys::enable_ack_stamps(self.fd()).is_ok();
        let info = self.info();
        self.syn_retransmits = info.retransmits;
        if let Some(transfer) = &mut self.transfer {
            transfer.before = Some(info);
        }
    }

    pub(in crate::traffic) fn begin(&mut self, start: Time, size: Option<u64>) {
        self.transfer = Some(Transfer { start, size, offset: self.written, before: Some(self.info()), item: None });
    }

    /// Adds a message of an application, even if an earlier one is still in flight.
    pub(in crate::traffic) fn send(&mut self, message: Message) {
        if self.transfer.is_none() {
            self.transfer = Some(Transfer::of(&message, self.written, Some(self.info())));
            return;
        }
        let last = self.behind.back().map(|(_, end)| *end);
        let offset = last.or_else(|| self.transfer?.stream_end()).unwrap_or(self.written);
        self.behind.push_back((message, offset + message.size.0));
    }

    /// Ends the transfer in progress, and starts the next message.
    pub(in crate::traffic) fn advance(&mut self) {
        self.transfers_ended += 1;
        let next = self.behind.pop_front();
        self.transfer = next.map(|(message, end)| Transfer::of(&message, end - message.size.0, Some(self.info())));
    }

    /// Stops writing; data that the kernel has accepted is still sent.
    pub(in crate::traffic) fn stop(&mut self) {
        self.is_stopped = true;
        // Sends data that MSG_MORE holds back for a full segment.
        let _ = sockopt::set_tcp_nodelay(&self.fd, true);
    }

    /// Returns the number of bytes to be written, of the first transfer with any; `u64::MAX` if it is unlimited.
    pub(in crate::traffic) fn unwritten(&self) -> u64 {
        let Some(transfer) = self.transfer.filter(|_| !self.is_stopped) else { return 0 };
        let Some(end) = transfer.stream_end() else { return u64::MAX };
        if end > self.written {
            return end - self.written;
        }
        let next = self.behind.partition_point(|(_, end)| *end <= self.written);
        self.behind.get(next).map_or(0, |(_, end)| end - self.written)
    }

    /// Writes as much as the kernel accepts, in at most [`WRITES_IN_A_TURN`] calls.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(in crate::traffic) fn write(&mut self) -> io::Result<()> {
        for _ in 0..WRITES_IN_A_TURN {
            let remaining = usize::try_from(self.unwritten()).unwrap_or(usize::MAX);
            if remaining == 0 {
                return Ok(());
            }
            let chunk = &PAYLOAD[..remaining.min(CHUNK)];
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let taken = match (remaining > CHUNK, self.has_stamps) {
                (true, _) => send(&self.fd, chunk, flags | SendFlags::MORE).map_err(io::Error::from),
                (false, true) => sys::write_with_ack_stamp(self.fd(), chunk),
                (false, false) => send(&self.fd, chunk, flags).map_err(io::Error::from),
            };
            match taken {
                Ok(taken) => {
                    self.written += taken as u64;
                    if taken < chunk.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Empties the error queue. Returns the time at which the last byte of the transfer in progress was acknowledged,
    /// if known: its own timestamp, or that of a later byte, because the kernel keeps one timestamp for writes that it
    /// merges in a buffer.
    pub(in crate::traffic) fn read_stamps(&mut self, clock: &Clock) -> Option<Time> {
        while let Ok(Some(stamp)) = sys::next_ack_stamp(self.fd()) {
            self.stamps.push_back((stamp.byte, clock.at(monotonic_of(stamp.realtime_ns))));
        }
        let end = self.transfer.and_then(|transfer| transfer.stream_end()).filter(|end| *end <= self.written);
        let last_byte = end.map(|end| end.wrapping_sub(1) as u32);
        while let Some((byte, at)) = self.stamps.front().copied() {
            let beyond = last_byte.map_or(-1, |last| byte.wrapping_sub(last) as i32);
            if beyond <= 0 {
                self.stamps.pop_front();
            }
            if beyond >= 0 {
                return Some(at);
            }
        }
        None
    }

    /// Returns whether there is a transfer, no bytes are to be written, and all written bytes are acknowledged.
    pub(in crate::traffic) fn is_drained(&self) -> bool {
        self.transfer.is_some() && self.unwritten() == 0 && self.acked() == self.written
    }

    /// Returns and clears the socket's error.
    pub(in crate::traffic) fn error(&self) -> Option<Errno> {
        match sockopt::socket_error(&self.fd) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error),
        }
    }

    /// Returns the current state, as the end of a transfer at this time.
    pub(in crate::traffic) fn end(&self, at: Time) -> End {
        End { at, acked: self.acked(), info: self.info() }
    }

    pub(in crate::traffic) fn abort(self) {
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    /// Returns the number of acknowledged bytes of the stream.
    fn acked(&self) -> u64 {
        self.written - sys::unacknowledged_bytes(self.fd()).unwrap_or(self.written).min(self.written)
    }

    fn info(&self) -> TcpInfo {
        // The kernel returns it for broken connections too.
        tcp_info(self.fd()).unwrap_or_default()
    }
}

/// Converts a recent reading of CLOCK_REALTIME to CLOCK_MONOTONIC.
fn monotonic_of(realtime_ns: u64) -> u64 {
    let monotonic = monotonic_ns();
    let now = clock_gettime(ClockId::Realtime);
    let realtime = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    monotonic.saturating_sub(realtime.saturating_sub(realtime_ns))
}
