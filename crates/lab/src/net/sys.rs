//! What sockets may do in namespaces that we are not in: tried by a child that enters them first.
//!
//! A process with several threads cannot enter a user namespace itself, so the questions are asked between fork and exec
//! of a child that then does nothing.
#![allow(unsafe_code)]

use crate::net::holder::Holder;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Something that may be refused.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Give a TCP socket this congestion control.
    Algorithm(CString),
    /// Open a socket that sees every packet.
    PacketSocket,
}

/// Error numbers, 0 where it worked, of each question in the holder's network namespace.
pub(crate) fn ask(holder: &Holder, questions: Vec<Question>) -> io::Result<Vec<i32>> {
    let open = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", holder.pid()));
    // The user namespace comes first: entering it gives the right to enter the other.
    let mut namespaces = Vec::new();
    if holder.has_user_namespace() {
        namespaces.push(open("user")?);
    }
    namespaces.push(open("net")?);

    let (mut answers, writer) = pipe()?;
    let expected = questions.len();
    let raw_writer = writer.as_raw_fd();
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let in_child = move || {
        for namespace in &namespaces {
            // SAFETY: setns takes an open descriptor and touches no memory.
            if unsafe { libc::setns(namespace.as_raw_fd(), 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        for question in &questions {
            write_number(raw_writer, answer(question))?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls (setns, socket, setsockopt, close, write) on
    // descriptors and memory that exist since before the fork; it neither allocates nor takes locks.
    unsafe { command.pre_exec(in_child) };
    let status = command.status();
    drop(writer);
    status?;

    let mut bytes = Vec::new();
    answers.read_to_end(&mut bytes)?;
    let numbers: Vec<i32> = bytes.chunks_exact(4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    if numbers.len() == expected { Ok(numbers) } else { Err(io::Error::other("the child did not answer everything")) }
}

/// The error number of trying it.
fn answer(question: &Question) -> i32 {
    let (family, kind) = match question {
        Question::Algorithm(_) => (libc::AF_INET, libc::SOCK_STREAM),
        Question::PacketSocket => (libc::AF_PACKET, libc::SOCK_RAW),
    };
    // SAFETY: socket takes numbers only.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return errno();
    }
    let mut result = 0;
    if let Question::Algorithm(name) = question {
        let bytes = name.as_bytes();
        // SAFETY: the pointer and the length are those of a live byte string, which setsockopt only reads.
        let refused = unsafe {
            libc::setsockopt(
                socket,
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                bytes.as_ptr().cast(),
                bytes.len() as libc::socklen_t,
            )
        };
        if refused != 0 {
            result = errno();
        }
    }
    // SAFETY: the descriptor is ours and is used no more.
    unsafe { libc::close(socket) };
    result
}

fn errno() -> i32 {
    // Never 0, which would stand for success.
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Writes four bytes; a pipe takes them whole.
fn write_number(fd: RawFd, number: i32) -> io::Result<()> {
    let bytes = number.to_ne_bytes();
    // SAFETY: the pointer and the length are those of a live array.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if written == bytes.len() as isize { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
}

/// A pipe that children do not keep: end to read, end to write.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for the two descriptors that pipe2 writes.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors were just made for us and belong to nobody else.
    unsafe { Ok((File::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))) }
}
