//! Threads that do something at exact moments until they are told to end.

use crate::clock::{monotonic_ns, timespec};
use crate::error::Error;
use crate::wakeup::Wakeup;
use rustix::event::{PollFd, PollFlags, poll};
use std::num::NonZeroU64;

/// Ends the sleep of all that sleep on it, for good.
#[derive(Clone, Debug)]
pub(super) struct Bell(Wakeup);

impl Bell {
    /// One that has not been rung.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(super) fn new() -> Result<Bell, Error> {
        let wakeup = Wakeup::open().map_err(|error| {
            Error::new("no-resources", format!("no descriptor is left: {error}"), "raise the limit: `ulimit -n 20000`")
        })?;
        Ok(Bell(wakeup))
    }

    /// Rings it.
    pub(super) fn ring(&self) {
        self.0.notify();
    }

    /// Sleeps until a reading of CLOCK_MONOTONIC, or for ever. False: the bell was rung.
    pub(super) fn sleep_until(&self, at_ns: Option<u64>) -> bool {
        self.sleep_from(at_ns.map_or(0, |_| monotonic_ns()), at_ns)
    }

    /// The same for who has just read the clock, and what it showed: looks at the clock are not free everywhere.
    pub(super) fn sleep_from(&self, mut now_ns: u64, at_ns: Option<u64>) -> bool {
        loop {
            let timeout = at_ns.map(|at| timespec(at.saturating_sub(now_ns)));
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                // It is never early.
                Ok(0) => return true,
                Err(rustix::io::Errno::INTR) => now_ns = at_ns.map_or(0, |_| monotonic_ns()),
                // A descriptor that cannot be waited for would make the thread spin: better that it ends.
                Ok(_) | Err(_) => return false,
            }
        }
    }
}

/// Lets this thread wake as close to the moment as the hardware can: by default the kernel may add 50 us.
pub(super) fn sleep_exactly() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_at_its_deadline_or_on_a_wakeup() {
        let bell = Bell::new().unwrap();
        let at = monotonic_ns() + 2_000_000;
        assert!(bell.sleep_until(Some(at)));
        assert!(monotonic_ns() >= at);
        bell.ring();
        assert!(!bell.sleep_until(Some(monotonic_ns() + 3_600_000_000_000)));
        assert!(!bell.sleep_until(None), "it stays rung");
    }
}
