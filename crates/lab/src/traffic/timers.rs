//! Timed events: a heap of times, and a descriptor that wakes the loop at the earliest one.
//!
//! The descriptor is a timerfd on CLOCK_MONOTONIC with absolute times, without the timer slack that applies to waits
//! with a timeout.

use crate::clock::{Clock, monotonic_ns, timespec};
use crate::error::Error;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thalweg_units::Time;

/// Scheduled events; those at the same time are in the order in which they were scheduled.
#[derive(Debug)]
pub(super) struct Timers<E> {
    fd: OwnedFd,
    clock: Clock,
    heap: BinaryHeap<Reverse<(Time, u64, E)>>,
    entered: u64,
    armed: Option<Time>,
}

impl<E: Ord> Timers<E> {
    /// Returns timers without events.
    ///
    /// # Errors
    /// If the limit of descriptors is reached.
    pub(super) fn new(clock: Clock) -> Result<Timers<E>, Error> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|error| failed(&error))?;
        Ok(Timers { fd, clock, heap: BinaryHeap::new(), entered: 0, armed: None })
    }

    /// Returns a descriptor that becomes readable at the time of the next event.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Schedules an event at a time, which may be in the past.
    pub(super) fn enter(&mut self, at: Time, event: E) {
        self.heap.push(Reverse((at, self.entered, event)));
        self.entered += 1;
    }

    /// Returns the next event that is due, and its time.
    pub(super) fn due(&mut self) -> Option<(Time, E)> {
        // The experiment's clock stays at zero until the start, so events are compared with the machine's clock.
        let is_due = |at: Time| self.clock.monotonic_ns(at) <= monotonic_ns();
        self.heap.peek().filter(|Reverse((at, _, _))| is_due(*at))?;
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// Sets the descriptor to the time of the next event. Must be called before waiting.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn arm(&mut self) -> Result<(), Error> {
        let next = self.heap.peek().map(|Reverse((at, _, _))| *at);
        if next == self.armed {
            return Ok(());
        }
        let value = timespec(next.map_or(0, |at| self.clock.monotonic_ns(at).max(1)));
        let spec = Itimerspec { it_interval: timespec(0), it_value: value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec).map_err(|error| failed(&error))?;
        self.armed = next;
        Ok(())
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new("no-timer", format!("a timer cannot be set: {error}"), "close other programs and try again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn timers_expire_in_order_and_not_early() {
        let clock = Clock::starting_at(monotonic_ns() + 20_000_000);
        let mut timers = Timers::new(clock).unwrap();
        timers.enter(Time(2_000_000), 'c');
        timers.enter(Time(0), 'a');
        timers.enter(Time(0), 'b');
        assert_eq!(timers.due(), None, "the experiment has not started");
        let mut expired = String::new();
        while expired.len() < 3 {
            timers.arm().unwrap();
            poll(&mut [PollFd::new(&timers.fd, PollFlags::IN)], Some(&timespec(5_000_000_000))).unwrap();
            while let Some((at, event)) = timers.due() {
                assert!(clock.monotonic_ns(at) <= monotonic_ns());
                expired.push(event);
            }
        }
        assert_eq!(expired, "abc");
        timers.arm().unwrap();
        let ready = poll(&mut [PollFd::new(&timers.fd, PollFlags::IN)], Some(&timespec(0))).unwrap();
        assert_eq!(ready, 0, "nothing is left to wake for");
    }
}
