//! Connections that bring much: each is read by a thread of its own, in as few system calls as there can be.
//!
//! A read with MSG_WAITALL stays in the kernel until it has all that it asks for. It takes every segment when that
//! arrives, as a program does that reads at once, and after each it makes what TCP makes of a read: the window is
//! opened, and an ACK is sent if one is due (tcp_recvmsg_locked in net/ipv4/tcp.c: tcp_rcv_space_adjust after each
//! piece, tcp_cleanup_rbuf before each wait). So what leaves the receiver is the same; only the way to the program and
//! back is spared. That way is what costs most in a user-mode kernel.

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// From this many bytes on a connection is worth a thread.
pub(super) const WORTH: u64 = 256 << 10;

/// Threads at a time; further connections are read by the loop that reads all others.
const THREADS: usize = 256;

/// Bytes of one read. The memory is never touched.
const DISCARD: usize = 1 << 20;

/// Memory for a thread's stack: it calls next to nothing.
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
    /// Reads a connection from here on, to its end; gives it back if it has no thread for it.
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
            // The thread that there is not has not kept its part.
            Err(_) => Arc::try_unwrap(connection).map_or(Ok(()), |connection| {
                let _ = ioctl_fionbio(&connection, true);
                Err(connection)
            }),
        }
    }

    /// Ends all threads, and says how many bytes they have read.
    pub(super) fn finish(self) -> u64 {
        for reader in &self.readers {
            // Wakes it, whatever it waits for; what has ended already needs no waking.
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
            // It was closed, or reset, as the experiment's end does.
            Ok((_, 0)) | Err(_) => return,
        }
    }
}
