//! A signal that stops threads while they wait for a time.

use crate::clock::{monotonic_ns, timespec};
use crate::error::Error;
use crate::wakeup::Wakeup;
use rustix::event::{PollFd, PollFlags, poll};
use std::num::NonZeroU64;

/// Stops the threads that wait for it. It cannot be reset.
#[derive(Clone, Debug)]
pub(super) struct StopSignal(Wakeup);

impl StopSignal {
    /// Returns a signal that is not set.
    ///
    /// # Errors
    /// If the limit of descriptors is reached.
    pub(super) fn new() -> Result<StopSignal, Error> {
        let wakeup = Wakeup::open().map_err(|error| {
            Error::new(
                "no-resources",
                format!("no file descriptor is left: {error}"),
                "raise the limit: `ulimit -n 20000`",
            )
        })?;
        Ok(StopSignal(wakeup))
    }

    pub(super) fn set(&self) {
        self.0.notify();
    }

    /// Sleeps until a reading of CLOCK_MONOTONIC, or without limit. Returns false if the signal is set.
    pub(super) fn sleep_until(&self, at_ns: Option<u64>) -> bool {
        self.sleep_from(at_ns.map_or(0, |_| monotonic_ns()), at_ns)
    }

    /// Like [`StopSignal::sleep_until`], with the current time: reading the clock is expensive on some machines.
    pub(super) fn sleep_from(&self, mut now_ns: u64, at_ns: Option<u64>) -> bool {
        loop {
            let timeout = at_ns.map(|at| timespec(at.saturating_sub(now_ns)));
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                // poll(2) does not return early.
                Ok(0) => return true,
                Err(rustix::io::Errno::INTR) => now_ns = at_ns.map_or(0, |_| monotonic_ns()),
                // If poll(2) fails, the thread stops instead of polling in a busy loop.
                Ok(_) | Err(_) => return false,
            }
        }
    }
}

/// Minimises the timer slack of this thread, which is 50 us by default.
pub(super) fn minimise_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_at_its_deadline_or_on_a_wakeup() {
        let stop = StopSignal::new().unwrap();
        let at = monotonic_ns() + 2_000_000;
        assert!(stop.sleep_until(Some(at)));
        assert!(monotonic_ns() >= at);
        stop.set();
        assert!(!stop.sleep_until(Some(monotonic_ns() + 3_600_000_000_000)));
        assert!(!stop.sleep_until(None), "it stays set");
    }
}
