//! The socket options of TCP whose answers have any length; rustix has only those of a fixed one.
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
    // SAFETY: `answer` is writable for `room` bytes, which is what `length` says, and the kernel writes no more than that
    // (getsockopt(2)); both live until the call returns. The descriptor is borrowed, hence open.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, answer.as_mut_ptr().cast(), &raw mut length)
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length.min(room) as usize)
}
