//! System calls that rustix lacks.
//!
//! Sources: Documentation/networking/timestamping.rst of Linux; tcp(7) for SIOCOUTQ; sendmmsg(2).

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

/// `SCM_TSTAMP_ACK` of linux/errqueue.h: the timestamp is that of the receiver's acknowledgement.
const SCM_TSTAMP_ACK: u32 = 2;

/// Buffer for control messages, with the required alignment.
type ControlBuffer = [u64; 32];

/// Time at which the kernel received the acknowledgement of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckStamp {
    /// Position of the byte in the stream since timestamps were enabled, modulo 2^32.
    pub byte: u32,
    /// Reading of CLOCK_REALTIME.
    pub realtime_ns: u64,
}

/// Enables timestamps for a connection, on which no data may be in flight: bytes are counted from the next one.
pub fn enable_ack_stamps(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    // SAFETY: the option's value is an int that lives until the call returns, with its size.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            ptr::from_ref(&flags).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel pace a connection regardless of its algorithm, at the rate that it computes for every connection:
/// setting a maximum rate enables pacing, and this maximum is never reached.
///
/// Source: sk_setsockopt (SO_MAX_PACING_RATE) and tcp_update_pacing_rate of Linux.
pub fn pace(fd: BorrowedFd<'_>) -> io::Result<()> {
    // One less than the value that disables pacing.
    let rate = u64::MAX - 1;
    // SAFETY: the option's value is a number that lives until the call returns, with its size.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            ptr::from_ref(&rate).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Writes without blocking, and requests a timestamp for the last accepted byte.
pub fn write_with_ack_stamp(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let mut control: ControlBuffer = [0; 32];
    let request = libc::SOF_TIMESTAMPING_TX_ACK;
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all fields of a msghdr may be zero.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE is a pure computation.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u32>() as u32) } as _;
    // SAFETY: the buffer has space for one control message of four bytes and is aligned for it. The kernel only reads
    // the memory that the message points to, and all of it lives until the call returns.
    let written = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SO_TIMESTAMPING;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(request);
        libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Returns the next timestamp in a connection's error queue; `None` if the queue has none. Discards other messages.
pub fn next_ack_stamp(fd: BorrowedFd<'_>) -> io::Result<Option<AckStamp>> {
    loop {
        let mut control: ControlBuffer = [0; 32];
        // SAFETY: all fields of a msghdr may be zero.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<ControlBuffer>() as _;
        // SAFETY: the control buffer belongs to this function, is writable and has the given length; there is no data
        // buffer.
        let read = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if read < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        if let Some(stamp) = ack_stamp(&message) {
            return Ok(Some(stamp));
        }
    }
}

fn ack_stamp(message: &libc::msghdr) -> Option<AckStamp> {
    let (mut byte, mut realtime_ns) = (None, None);
    // SAFETY: the kernel has filled the control buffer and set its length. The macros stay within it, and each payload
    // has the type that belongs to its level and type.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    // The first of three timestamps is the software timestamp.
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    realtime_ns = Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                    let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                    let is_stamp = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                    byte = (is_stamp && error.ee_info == SCM_TSTAMP_ACK).then_some(error.ee_data);
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    Some(AckStamp { byte: byte?, realtime_ns: realtime_ns? })
}

/// Returns the number of bytes that the kernel has accepted and the receiver has not acknowledged.
pub fn unacknowledged_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { Ok(bytes.max(0) as u64) } else { Err(io::Error::last_os_error()) }
}

/// Sends a datagram several times without blocking; returns the number of accepted datagrams, at most 64.
pub fn send_repeatedly(fd: BorrowedFd<'_>, payload: &[u8], times: usize) -> io::Result<usize> {
    const AT_ONCE: usize = 64;
    let mut part = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
    // SAFETY: all fields of an mmsghdr may be zero.
    let mut messages: [libc::mmsghdr; AT_ONCE] = unsafe { zeroed() };
    let count = times.min(AT_ONCE);
    for message in &mut messages[..count] {
        message.msg_hdr.msg_iov = &raw mut part;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages are initialized, and the memory that they point to lives until the call
    // returns.
    let sent = unsafe {
        libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, libc::MSG_DONTWAIT as _)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Borrows the descriptor of a reference.
pub fn fd(of: &impl AsFd) -> BorrowedFd<'_> {
    of.as_fd()
}
