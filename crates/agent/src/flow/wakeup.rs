//! Wakes the daemon so that it drains its event queue before a client is answered.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(1);

/// Requests to the daemon.
#[derive(Debug)]
pub struct Wakeup {
    eventfd: OwnedFd,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_serving: bool,
    requests: u64,
    /// Number of requests that preceded the last drain of the queue.
    answered: u64,
}

impl Wakeup {
    /// Returns a wakeup whose daemon does not serve requests yet.
    ///
    /// # Errors
    /// If the limit of file descriptors is reached.
    pub fn new() -> io::Result<Wakeup> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wakeup { eventfd, state: Mutex::default(), answered: Condvar::new() })
    }

    /// Wakes the daemon, and waits for at most `PATIENCE` until it has drained its event queue, if it serves requests.
    pub fn wake(&self) {
        self.wake_for(PATIENCE);
    }

    fn wake_for(&self, patience: Duration) {
        let mut state = self.state();
        if !state.is_serving {
            return;
        }
        state.requests += 1;
        let number = state.requests;
        // If the counter overflows, the daemon wakes nevertheless.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        let waits = |state: &mut State| state.is_serving && state.answered < number;
        drop(self.answered.wait_timeout_while(state, patience, waits));
    }

    /// Sets whether the daemon serves requests.
    pub fn set_serving(&self, is_serving: bool) {
        self.state().is_serving = is_serving;
        self.answered.notify_all();
    }

    /// Returns the number of requests so far: the next drain answers all of them.
    pub fn requested(&self) -> u64 {
        // Resets the eventfd.
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        self.state().requests
    }

    /// Reports that the queue was drained after [`requested`](Wakeup::requested) returned this number.
    pub fn answer(&self, requested: u64) {
        self.state().answered = requested;
        self.answered.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Wakeup {
    /// The descriptor is readable while there are new requests.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_client_waits_for_a_complete_poll_cycle_of_the_daemon() {
        let (wakeup, is_over, rounds) = (Wakeup::new().unwrap(), AtomicBool::new(false), AtomicU64::new(0));
        wakeup.set_serving(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let requested = wakeup.requested();
                    rounds.fetch_add(1, Ordering::Relaxed);
                    wakeup.answer(requested);
                    thread::yield_now();
                }
            });
            for _ in 0..100 {
                let before = rounds.load(Ordering::Relaxed);
                wakeup.wake_for(LONG);
                assert!(rounds.load(Ordering::Relaxed) > before, "a complete cycle lies in between");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn no_client_waits_for_a_daemon_that_has_stopped_serving() {
        let wakeup = Wakeup::new().unwrap();
        wakeup.wake();
        wakeup.set_serving(true);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wakeup.wake_for(LONG));
            while wakeup.requested() == 0 {
                thread::yield_now();
            }
            wakeup.set_serving(false);
            waiting.join().unwrap();
        });
        assert_eq!(wakeup.state().answered, 0);
    }
}
