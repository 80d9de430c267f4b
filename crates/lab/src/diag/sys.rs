//! System calls that rustix does not have: socket options of TCP whose answers have any length, and recvmmsg(2).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(super) use libc::{TCP_CC_INFO, TCP_CONGESTION, TCP_INFO};

/// `TCP_CA_NAME_MAX`, in bytes.
pub(super) const CC_NAME: usize = 16;

/// Reads a socket option of TCP as far as `answer` has room; returns how many bytes came.
pub(super) fn tcp_option(socket: BorrowedFd<'_>, option: libc::c_int, answer: &mut [u8]) -> io::Result<usize> {
    let room = libc::socklen_t::try_from(answer.len()).unwrap_or(libc::socklen_t::MAX);
    let mut length = room;
    // SAFETY: `answer` is writable for `room` bytes, which is what `length` says, and the kernel writes no more than
    // that (getsockopt(2)); both live until the call returns. The descriptor is borrowed, hence open.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, answer.as_mut_ptr().cast(), &raw mut length)
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length.min(room) as usize)
}

/// Receives what is there, but at least one datagram, each into a buffer of its own; gives their lengths, which are
/// larger than the buffer where that is too small.
pub(super) fn receive<const N: usize>(
    socket: BorrowedFd<'_>,
    buffers: &mut [Box<[u8]>; N],
) -> io::Result<impl Iterator<Item = usize> + use<N>> {
    let mut parts =
        buffers.each_mut().map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
    let mut messages = parts.each_mut().map(|part| {
        // SAFETY: a structure of numbers and pointers, for which zeros are fine.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    });
    let flags = libc::MSG_TRUNC | libc::MSG_WAITFORONE;
    // SAFETY: `messages` are as many as we say, and each points to a part, which points to a buffer of the length that
    // it says; all live until the call returns. The descriptor is borrowed, hence open.
    let received = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), N as libc::c_uint, flags as _, std::ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok(messages.map(|message| message.msg_len as usize).into_iter().take(received))
}
