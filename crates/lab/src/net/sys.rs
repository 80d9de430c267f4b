//! System calls in other namespaces, made by a child process that enters them between fork and exec.
//!
//! A process with several threads cannot enter a user namespace. A child can, because it has one thread until exec.
//! [`act`] makes system calls in such a child without exec: starting a program for each call would take much longer.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// An operation, which the system may refuse.
#[derive(Debug)]
pub(crate) enum Act {
    /// Sets this congestion control on a TCP socket.
    Algorithm(CString),
    /// Opens a packet socket.
    PacketSocket,
    /// Mounts an empty tmpfs over a folder; the second string is its source in the table of mounts.
    Cover(CString, CString),
    /// Creates a folder.
    MakeFolder(CString),
    /// Writes these bytes into an existing file.
    Write(CString, Vec<u8>),
    /// Reads at most [`ANSWER`] bytes of a file.
    Read(CString),
    /// Enters this network namespace.
    Enter(File),
    /// Queries a value of an interface (`struct ethtool_value`) with this command of the ioctl SIOCETHTOOL.
    Ethtool(CString, u32),
}

/// Result of an operation: the bytes that were read, or the errno value, which is never 0.
pub(crate) type Answer = Result<Vec<u8>, i32>;

/// Maximum length of an answer in bytes.
const ANSWER: usize = 512;

/// Makes the child process enter these namespaces in this order before it starts its program. If requested, it first
/// gets a priority under SCHED_FIFO, which the kernel may refuse to processes that have entered a user namespace.
pub(crate) fn enter_first(command: &mut Command, namespaces: Vec<File>, fifo_priority: Option<i32>) {
    let in_child = move || {
        if let Some(priority) = fifo_priority {
            set_fifo(priority)?;
        }
        namespaces.iter().try_for_each(enter)
    };
    // SAFETY: between fork and exec the closure only makes system calls on descriptors and memory that exist since
    // before the fork, or on its stack; it neither allocates nor takes locks.
    unsafe { command.pre_exec(in_child) };
}

/// Returns whether this user may use a priority under SCHED_FIFO. A separate thread tries it, and exits.
pub(crate) fn may_have_fifo(priority: i32) -> bool {
    std::thread::spawn(move || set_fifo(priority).is_ok()).join().unwrap_or(false)
}

/// Enters these namespaces in this order, and executes the acts in order, even if an earlier one failed.
///
/// # Errors
/// If the system refuses the child process, or the namespaces cannot be entered.
pub(crate) fn act(namespaces: Vec<File>, acts: Vec<Act>) -> io::Result<Vec<Answer>> {
    let (mut answers, writer) = pipe()?;
    let expected = acts.len();
    let raw_writer = writer.as_raw_fd();
    // The child exits before it would execute this program.
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let in_child = move || {
        namespaces.iter().try_for_each(enter)?;
        for act in &acts {
            let mut answer = [0; ANSWER];
            let (errno, length) = match perform(act, &mut answer) {
                Ok(length) => (0, length),
                Err(error) => (error.raw_os_error().unwrap_or(libc::EIO), 0),
            };
            write_all(raw_writer, &errno.to_ne_bytes())?;
            write_all(raw_writer, &(length as u32).to_ne_bytes())?;
            write_all(raw_writer, &answer[..length])?;
        }
        // SAFETY: it exits this process, which needs no cleanup, and touches no memory.
        unsafe { libc::_exit(0) }
    };
    // SAFETY: between fork and exit the closure only makes system calls on descriptors and memory that exist since
    // before the fork, or on its stack; it neither allocates nor takes locks.
    unsafe { command.pre_exec(in_child) };
    let child = command.spawn();
    drop(writer);
    let mut child = child?;
    let mut bytes = Vec::new();
    let read = answers.read_to_end(&mut bytes);
    child.wait()?;
    read?;
    parse(&bytes)
        .filter(|answers| answers.len() == expected)
        .ok_or_else(|| io::Error::other("the child process exited early"))
}

fn parse(mut bytes: &[u8]) -> Option<Vec<Answer>> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let (errno, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (answer, rest) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        answers.push(match i32::from_ne_bytes(*errno) {
            0 => Ok(answer.to_vec()),
            errno => Err(errno),
        });
        bytes = rest;
    }
    Some(answers)
}

/// Executes an act; returns the number of bytes read.
fn perform(act: &Act, answer: &mut [u8; ANSWER]) -> io::Result<usize> {
    match act {
        Act::Algorithm(name) => set_algorithm(&socket(libc::AF_INET, libc::SOCK_STREAM)?, name)?,
        Act::PacketSocket => drop(socket(libc::AF_PACKET, libc::SOCK_RAW)?),
        Act::Cover(folder, name) => cover(folder, name)?,
        Act::MakeFolder(path) => {
            // SAFETY: the path is a valid string that ends with NUL.
            check(unsafe { libc::mkdir(path.as_ptr(), 0o755) })?;
        }
        Act::Write(path, bytes) => write_all(open(path, libc::O_WRONLY)?.as_raw_fd(), bytes)?,
        Act::Read(path) => {
            let file = open(path, libc::O_RDONLY)?;
            // SAFETY: the pointer and the length are those of a live array.
            let read = unsafe { libc::read(file.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len()) };
            return usize::try_from(read).map_err(|_| io::Error::last_os_error());
        }
        Act::Enter(namespace) => enter(namespace)?,
        Act::Ethtool(interface, command) => {
            let value = ethtool(&socket(libc::AF_INET, libc::SOCK_DGRAM)?, interface, *command)?;
            answer[..4].copy_from_slice(&value.to_ne_bytes());
            return Ok(4);
        }
    }
    Ok(0)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: setns takes an open descriptor and touches no memory.
    check(unsafe { libc::setns(namespace.as_raw_fd(), 0) }).map(drop)
}

/// Sets this priority under SCHED_FIFO for the calling thread.
pub(crate) fn set_fifo(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live until the call returns; 0 means the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) }).map(drop)
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes only numbers.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_algorithm(socket: &OwnedFd, name: &CStr) -> io::Result<()> {
    let bytes = name.to_bytes();
    let (level, option, length) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION, bytes.len() as libc::socklen_t);
    // SAFETY: the pointer and the length are those of a live byte string, which setsockopt only reads.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes.as_ptr().cast(), length) }).map(drop)
}

fn cover(folder: &CStr, name: &CStr) -> io::Result<()> {
    // SAFETY: all strings are valid and end with NUL; this kind of file system needs no data.
    check(unsafe { libc::mount(name.as_ptr(), folder.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()) }).map(drop)
}

fn ethtool(socket: &OwnedFd, interface: &CStr, command: u32) -> io::Result<u32> {
    /// `struct ethtool_value` of linux/ethtool.h.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut value = Value { command, data: 0 };
    // SAFETY: the structure contains only numbers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays NUL.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(interface.to_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request and the value that it points to live until the call returns, and have the types that the call
    // expects.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    Ok(value.data)
}

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

fn open(path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path is a valid string that ends with NUL.
    let fd = check(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Writes to a pipe or a kernel file, which accept all bytes at once.
fn write_all(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a live slice.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    match usize::try_from(written) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(length) if length == bytes.len() => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// Returns a pipe that closes on exec, as the read end and the write end.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has space for the two descriptors that pipe2 writes.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new, and have no other owner.
    unsafe { Ok((File::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))) }
}
