//! Reads large connections: a thread for each, with as few system calls as possible.
//!
//! A read with MSG_WAITALL stays in the kernel until it has all requested bytes. It takes every segment when that
//! arrives, like a program that reads at once, and has the same effect on TCP as single reads: the window is opened,
//! and an ACK is sent if one is due (tcp_recvmsg_locked in net/ipv4/tcp.c: tcp_rcv_space_adjust after each piece,
//! tcp_cleanup_rbuf before each wait). So the receiver sends the same packets; only the switches between kernel and
//! program are saved, which are the largest cost in a user-mode kernel.

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// From this number of bytes on, a connection gets a thread.
pub(super) const WORTH: u64 = 256 << 10;

/// Maximum number of threads; the main loop reads further connections.
const THREADS: usize = 256;

/// Bytes of one read. The memory is never touched.
const DISCARD: usize = 1 << 20;

/// Stack of a thread, which calls few functions.
const STACK: usize = 64 << 10;

/// The threads.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    readers: Vec<Reader>,
    bytes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Reader {
    connection: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

impl Bulk {
    /// Reads a connection from here on, to its end; returns it if there is no thread for it.
    pub(super) fn take(&mut self, connection: OwnedFd) -> Result<(), OwnedFd> {
        self.readers.retain(|reader| !reader.thread.is_finished());
        if self.readers.len() >= THREADS || ioctl_fionbio(&connection, false).is_err() {
            return Err(connection);
        }
        let connection = Arc::new(connection);
        let (theirs, bytes) = (Arc::clone(&connection), Arc::clone(&self.bytes));
        let thread =
            thread::Builder::new().name("bulk".to_owned()).stack_size(STACK).spawn(move || read(&theirs, &bytes));
        match thread {
            Ok(thread) => {
                self.readers.push(Reader { connection, thread });
                Ok(())
            }
            // The thread that could not start has dropped its reference.
            Err(_) => Arc::try_unwrap(connection).map_or(Ok(()), |connection| {
                let _ = ioctl_fionbio(&connection, true);
                Err(connection)
            }),
        }
    }

    /// Ends all threads, and returns the number of bytes that they have read.
    pub(super) fn finish(self) -> u64 {
        for reader in &self.readers {
            // Wakes the thread; if it has ended already, this has no effect.
            let _ = shutdown(&*reader.connection, Shutdown::Both);
        }
        for reader in self.readers {
            let _ = reader.thread.join();
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

fn read(connection: &OwnedFd, bytes: &AtomicU64) {
    let mut nowhere = vec![0; DISCARD];
    loop {
        match recv(connection, &mut *nowhere, RecvFlags::TRUNC | RecvFlags::WAITALL) {
            Ok((_, discarded @ 1..)) => drop(bytes.fetch_add(discarded as u64, Ordering::Relaxed)),
            Err(Errno::INTR) => {}
            // The connection was closed, or reset, as at the experiment's end.
            Ok((_, 0)) | Err(_) => return,
        }
    }
}
