//! A descriptor with which a thread wakes other threads that wait in poll(2) or epoll(7).

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An eventfd(2); its copies share the descriptor. It is readable from [`Wakeup::notify`] to [`Wakeup::clear`].
#[derive(Clone, Debug)]
pub(crate) struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    /// Opens a descriptor that is not readable yet.
    ///
    /// # Errors
    /// If the kernel refuses, for example at the limit of descriptors.
    pub fn open() -> rustix::io::Result<Wakeup> {
        eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map(|fd| Wakeup(Arc::new(fd)))
    }

    /// Makes the descriptor readable.
    pub fn notify(&self) {
        // The write fails only if the counter is full, in which case the descriptor is already readable.
        let _ = write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable.
    pub fn clear(&self) {
        let _ = read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
