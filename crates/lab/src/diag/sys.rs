//! System calls that rustix lacks: TCP socket options whose values have a variable length, and recvmmsg(2).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(super) use libc::{TCP_CC_INFO, TCP_CONGESTION, TCP_INFO};

/// `TCP_CA_NAME_MAX`, in bytes.
pub(super) const CC_NAME: usize = 16;

/// Reads a TCP socket option into `answer`; returns the length of the value in bytes.
pub(super) fn tcp_option(socket: BorrowedFd<'_>, option: libc::c_int, answer: &mut [u8]) -> io::Result<usize> {
    let room = libc::socklen_t::try_from(answer.len()).unwrap_or(libc::socklen_t::MAX);
    let mut length = room;
    // SAFETY: `answer` is writable for `room` bytes, which is the value of `length`, and the kernel writes at most that
    // many (getsockopt(2)). Both live until the call returns. The descriptor is borrowed, hence open.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, answer.as_mut_ptr().cast(), &raw mut length)
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length.min(room) as usize)
}

/// Waits for a datagram, and receives at most `N` pending ones, each into a separate buffer. Returns their lengths; a
/// length above the buffer size means that the datagram was truncated.
pub(super) fn receive<const N: usize>(
    socket: BorrowedFd<'_>,
    buffers: &mut [Box<[u8]>; N],
) -> io::Result<impl Iterator<Item = usize> + use<N>> {
    let mut parts =
        buffers.each_mut().map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
    let mut messages = parts.each_mut().map(|part| {
        // SAFETY: the structure contains only numbers and pointers, for which zeros are valid.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    });
    let flags = libc::MSG_TRUNC | libc::MSG_WAITFORONE;
    // SAFETY: the count equals the length of `messages`; each message points to a part, which points to a buffer of the
    // given length; all live until the call returns. The descriptor is borrowed, hence open.
    let received = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), N as libc::c_uint, flags as _, std::ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok(messages.map(|message| message.msg_len as usize).into_iter().take(received))
}
