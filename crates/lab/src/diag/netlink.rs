//! Dumps over netlink: one request, several answers (netlink(7); include/uapi/linux/netlink.h of the kernel).
//!
//! Input is parsed as untrusted bytes.

use super::bytes::{i32_at, u16_at, u32_at};
use super::sys;
use crate::error::Error;
use rustix::io::{Errno, Result as IoResult};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, send, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A request that is answered by a dump.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    request: Vec<u8>,
    /// Sequence number of the latest request, which its answers repeat.
    sequence: u32,
    /// The end of a dump is a separate datagram: with two buffers, one call can receive a short dump and its end.
    buffers: [Box<[u8]>; 2],
}

/// Whether a dump is a consistent snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consistency {
    /// The kernel detected no change during the dump.
    Whole,
    /// An answer may be missing or repeated.
    Interrupted,
}

/// Reason why bytes cannot be parsed.
pub(super) type Malformed = &'static str;

/// Buffer size of a datagram in bytes; the kernel's dump datagrams usually have at most 32 KiB.
const BUFFER_BYTES: usize = 1 << 16;

/// Timeout for an answer, which may be lost.
const PATIENCE: Duration = Duration::from_secs(5);

const NLMSG_HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Lowest message type that is not reserved by netlink.
const NLMSG_MIN_TYPE: u16 = 0x10;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x10;

const ATTRIBUTE_HEADER: usize = 4;
/// Bits of an attribute's type that are not flags.
const ATTRIBUTE_TYPE: u16 = 0x3fff;

impl Netlink {
    /// Opens a socket for requests of this type and body; without `protocol`, it uses rtnetlink.
    pub fn open(protocol: Option<Protocol>, kind: u16, body: &[u8]) -> IoResult<Netlink> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        let length = u32::try_from(NLMSG_HEADER + body.len()).map_err(|_| Errno::MSGSIZE)?;
        let mut request = Vec::with_capacity(NLMSG_HEADER + body.len());
        request.extend(length.to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        request.extend([0; 8]); // sequence number, port
        request.extend(body);
        Ok(Netlink { socket, request, sequence: 0, buffers: [(); 2].map(|()| vec![0; BUFFER_BYTES].into()) })
    }

    /// Returns the socket.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends the request, and passes the body of each answer. After an error, a new socket is needed.
    ///
    /// # Errors
    /// The result of `refused` for the kernel's error code; or an answer is malformed, and `about` names the subject.
    pub fn dump(
        &mut self,
        about: &str,
        refused: &dyn Fn(Errno) -> Error,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<Consistency, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        self.request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        send(&self.socket, &self.request, SendFlags::empty()).map_err(refused)?;
        let mut consistency = Consistency::Whole;
        loop {
            let lengths = match sys::receive(self.socket.as_fd(), &mut self.buffers) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                received => received.map_err(|error| refused(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?,
            };
            for (buffer, length) in self.buffers.iter().zip(lengths) {
                let datagram = buffer.get(..length).ok_or("a datagram exceeds the buffer");
                let progress = datagram.and_then(|bytes| read_datagram(bytes, self.sequence, &mut consistency, each));
                match progress {
                    Ok(Progress::More) => {}
                    Ok(Progress::Done) => return Ok(consistency),
                    Ok(Progress::Refused(errno)) => return Err(refused(errno)),
                    Err(reason) => {
                        return Err(Error::new(
                            "kernel-answer",
                            format!("the kernel's answer about {about} is malformed: {reason}"),
                            "report this, with the output of: uname -a",
                        ));
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
    Refused(Errno),
}

const MAX_ERRNO: i32 = 4095;

/// Passes the body of each answer in a datagram; skips answers to earlier requests.
pub(super) fn read_datagram(
    mut bytes: &[u8],
    sequence: u32,
    consistency: &mut Consistency,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Malformed>,
) -> Result<Progress, Malformed> {
    while !bytes.is_empty() {
        let (message, rest) = split(bytes, u32_at(bytes, 0).map(|length| length as usize), NLMSG_HEADER)
            .ok_or("a message is truncated, or has an impossible length")?;
        bytes = rest;
        if u32_at(message, 8) != Some(sequence) {
            continue;
        }
        let (kind, flags) = u16_at(message, 4).zip(u16_at(message, 6)).ok_or("a message has no header")?;
        if flags & NLM_F_DUMP_INTR != 0 {
            *consistency = Consistency::Interrupted;
        }
        let body = &message[NLMSG_HEADER..];
        match kind {
            NLMSG_DONE | NLMSG_ERROR => {
                // NLMSG_DONE also carries an error code, for an error at the end of the dump.
                let code = i32_at(body, 0).ok_or("the final message has no error number")?;
                return match code.checked_neg() {
                    Some(errno @ 1..=MAX_ERRNO) => Ok(Progress::Refused(Errno::from_raw_os_error(errno))),
                    Some(..=0) => Ok(Progress::Done),
                    _ => Err("the final message has an unknown error number"),
                };
            }
            NLMSG_MIN_TYPE.. => each(body)?,
            _ => {}
        }
    }
    Ok(Progress::More)
}

/// Iterates over attributes, as pairs of type and content.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), Malformed>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let parts = split(bytes, u16_at(bytes, 0).map(usize::from), ATTRIBUTE_HEADER);
        let Some((attribute, rest)) = parts else {
            bytes = &[];
            return Some(Err("an attribute is truncated, or has an impossible length"));
        };
        bytes = rest;
        let kind = u16_at(attribute, 2).unwrap_or_default() & ATTRIBUTE_TYPE;
        Some(Ok((kind, &attribute[ATTRIBUTE_HEADER..])))
    })
}

/// Splits off the first `length` bytes; the rest begins at the next multiple of four.
fn split(bytes: &[u8], length: Option<usize>, shortest: usize) -> Option<(&[u8], &[u8])> {
    let length = length.filter(|length| *length >= shortest)?;
    let first = bytes.get(..length)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((first, rest))
}
