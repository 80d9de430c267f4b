//! A bell at the daemon's door. The daemon fetches events several times a second; whoever wants to know how things stand rings
//! first, so that what had ended before is counted.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long who has rung waits for an answer. The daemon may be busy; then what it knew before has to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bell.
#[derive(Debug)]
pub struct Bell {
    /// Wakes the daemon.
    rope: OwnedFd,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_at_home: bool,
    /// How often it was rung.
    rung: u64,
    /// Of how many of these the daemon has made good what they asked for.
    answered: u64,
}

impl Bell {
    /// Nobody is at home yet.
    ///
    /// # Errors
    /// If there are no more file descriptors.
    pub fn new() -> io::Result<Bell> {
        let rope = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell { rope, state: Mutex::default(), answered: Condvar::new() })
    }

    /// Rings, and waits until the daemon has fetched what there was. Where nobody is at home, nobody waits.
    pub fn ring(&self) {
        self.ring_for(PATIENCE);
    }

    fn ring_for(&self, patience: Duration) {
        let mut state = self.state();
        if !state.is_at_home {
            return;
        }
        state.rung += 1;
        let number = state.rung;
        // One that was rung too often to be counted rings all the same.
        let _ = rustix::io::write(&self.rope, &1u64.to_ne_bytes());
        let waits = |state: &mut State| state.is_at_home && state.answered < number;
        drop(self.answered.wait_timeout_while(state, patience, waits));
    }

    /// The daemon comes home, or leaves.
    pub fn set_at_home(&self, is_at_home: bool) {
        self.state().is_at_home = is_at_home;
        self.answered.notify_all();
    }

    /// How often it was rung until now: the daemon's answer to come is for all of them.
    pub fn heard(&self) -> u64 {
        // Silent again: whoever rings from here on rings anew.
        let _ = rustix::io::read(&self.rope, &mut [0; 8]);
        self.state().rung
    }

    /// What there was when the bell was [heard](Bell::heard) has been fetched.
    pub fn answer(&self, heard: u64) {
        self.state().answered = heard;
        self.answered.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Bell {
    /// Can be read while it rings.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rope.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    /// How long anything may take on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_rings_sees_what_the_daemon_has_done_since() {
        let (bell, is_over, rounds) = (Bell::new().unwrap(), AtomicBool::new(false), AtomicU64::new(0));
        bell.set_at_home(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let heard = bell.heard();
                    rounds.fetch_add(1, Ordering::Relaxed);
                    bell.answer(heard);
                    thread::yield_now();
                }
            });
            for _ in 0..100 {
                let before = rounds.load(Ordering::Relaxed);
                bell.ring_for(LONG);
                assert!(rounds.load(Ordering::Relaxed) > before, "a whole round lies in between");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn nobody_waits_for_a_daemon_that_is_not_there_or_leaves() {
        let bell = Bell::new().unwrap();
        bell.ring();
        bell.set_at_home(true);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| bell.ring_for(LONG));
            while bell.heard() == 0 {
                thread::yield_now();
            }
            bell.set_at_home(false);
            waiting.join().unwrap();
        });
        assert_eq!(bell.state().answered, 0);
    }
}
