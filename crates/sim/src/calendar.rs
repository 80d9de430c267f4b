//! The queue of timed events. Events at the same instant are returned in the order in which they were added.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use thalweg_units::Time;

/// A timed event. Links have no entries: they report their next event themselves, which saves an entry per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// A series opens its next connection, or its application wakes up.
    Open { series: usize },
    /// A flow stops sending.
    Stop { flow: usize },
    /// A connection starts its next request.
    Request { connection: usize },
    /// A sender's timer may have expired.
    SenderTimer { connection: usize },
    /// A receiver's timer may have expired.
    ReceiverTimer { connection: usize },
    /// A host may resume work that waits for one of its CPUs.
    Cpu { host: u32, cpu: u32 },
    /// The pacing timer of a connection whose sending host has two CPUs has expired.
    Pacing { connection: usize },
    /// A host handles the packets that its network card has collected.
    Interrupt { host: usize },
    /// A UDP source sends its next packet.
    Background { source: usize },
}

#[derive(Debug, Default)]
pub(crate) struct Calendar {
    heap: BinaryHeap<Reverse<Entry>>,
    entered: u64,
}

/// An event and its due time. Numbers are unique, so events are never compared.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    number: u64,
    event: SimEvent,
}

impl Entry {
    /// Returns the sort key as a single number, which is compared without a branch.
    fn order(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.number)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Entry {}

impl Calendar {
    pub(crate) fn enter(&mut self, at: Time, event: SimEvent) {
        self.entered += 1;
        self.heap.push(Reverse(Entry { at, number: self.entered, event }));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes and returns the next event if it is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<SimEvent> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry.event)
    }
}

/// The pending calendar entry of a timer. Timers move with every packet, mostly to later times. An entry is scheduled
/// only if the timer is due before the pending entry; an entry that expires too early is rescheduled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alarm {
    set: Option<Time>,
}

impl Alarm {
    /// Schedules `event` at `due`, unless it is already scheduled at that time or earlier; ignores `None`.
    pub(crate) fn set(&mut self, due: Option<Time>, event: SimEvent, calendar: &mut Calendar) {
        let Some(due) = due else { return };
        if self.set.is_none_or(|set| due < set) {
            self.set = Some(due);
            calendar.enter(due, event);
        }
    }

    /// Handles an entry that expires at `now`. Returns false if an earlier entry has replaced it.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let is_current = self.set == Some(now);
        if is_current {
            self.set = None;
        }
        is_current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_keep_their_order() {
        let mut calendar = Calendar::default();
        for source in [3, 1, 2] {
            calendar.enter(Time(5), SimEvent::Background { source });
        }
        calendar.enter(Time(4), SimEvent::Stop { flow: 0 });
        assert_eq!(calendar.take(Time(3)), None);
        assert_eq!(calendar.take(Time(9)), Some(SimEvent::Stop { flow: 0 }));
        let rest: Vec<_> = std::iter::from_fn(|| calendar.take(Time(9))).collect();
        assert_eq!(rest, [3, 1, 2].map(|source| SimEvent::Background { source }));
    }

    #[test]
    fn an_alarm_is_scheduled_only_if_earlier_than_the_pending_one() {
        let mut calendar = Calendar::default();
        let mut alarm = Alarm::default();
        let event = SimEvent::SenderTimer { connection: 0 };
        for due in [9, 12, 7] {
            alarm.set(Some(Time(due)), event, &mut calendar);
        }
        assert_eq!(calendar.take(Time(7)), Some(event));
        assert!(alarm.expire(Time(7)));
        assert_eq!(calendar.take(Time(9)), Some(event));
        assert!(!alarm.expire(Time(9)), "7 had replaced 9");
        assert_eq!(calendar.take(Time(99)), None);
    }
}
