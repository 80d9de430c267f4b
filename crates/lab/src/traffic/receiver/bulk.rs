//! Reads large connections: one thread per connection, with few system calls.
//!
//! A read with MSG_WAITALL stays in the kernel until it has all requested bytes. It has the same effect on TCP as
//! single reads: the window is opened, and an ACK is sent if one is due (tcp_recvmsg_locked in net/ipv4/tcp.c:
//! tcp_rcv_space_adjust after each piece, tcp_cleanup_rbuf before each wait). This saves switches between kernel and
//! program, which are expensive in a user-mode kernel.

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Number of received bytes from which on a connection gets a thread.
pub(super) const WORTH: u64 = 256 << 10;

const THREADS: usize = 256;

const DISCARD: usize = 1 << 20;

const STACK: usize = 64 << 10;

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
    /// Reads a connection to its end in a separate thread; returns the connection if that is not possible.
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

    /// Stops the threads; returns the number of bytes that they have read.
    pub(super) fn finish(self) -> u64 {
        for reader in &self.readers {
            // Wakes the thread.
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
            Ok((_, 0)) | Err(_) => return,
        }
    }
}
