//! Deficit round robin over sub-queues, new ones first (RFC 8290, section 4.2).
//!
//! A sub-queue that becomes active joins the list of new ones. The head of the new list (of the old list if the new one
//! is empty) is served while it has credit. Without credit it receives a quantum and joins the end of the old list. A
//! new sub-queue that becomes empty passes through the old list once, so that sparse flows cannot starve the others.

use std::collections::VecDeque;
use thalweg_units::Bytes;

/// The order in which sub-queues are served.
#[derive(Debug)]
pub(crate) struct Rounds {
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    /// State of each sub-queue: bytes that it may still send in this round, and whether it is in a list.
    credits: Vec<Credit>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    bytes: i64,
    is_listed: bool,
}

impl Rounds {
    pub fn new(sub_queues: usize, quantum: Bytes) -> Rounds {
        let quantum = i64::try_from(quantum.0.max(1)).unwrap_or(i64::MAX / 2);
        Rounds { new: VecDeque::new(), old: VecDeque::new(), quantum, credits: vec![Credit::default(); sub_queues] }
    }

    /// Whether the sub-queue is in a list.
    pub fn is_listed(&self, index: usize) -> bool {
        self.credits[index].is_listed
    }

    /// Adds a sub-queue that has become active, with this credit.
    pub fn activate(&mut self, index: usize, credit: Bytes) {
        self.credits[index] = Credit { bytes: i64::try_from(credit.0).unwrap_or(i64::MAX / 2), is_listed: true };
        self.new.push_back(index);
    }

    /// Returns the remaining credit of a sub-queue.
    pub fn credit(&self, index: usize) -> Bytes {
        Bytes(u64::try_from(self.credits[index].bytes).unwrap_or(0))
    }

    /// Returns the next sub-queue to serve; `None` if no sub-queue is active.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let credit = &mut self.credits[index];
            if credit.bytes > 0 {
                return Some(index);
            }
            credit.bytes += self.quantum;
            list.pop_front();
            self.old.push_back(index);
        }
    }

    /// Charges the sub-queue that [`Rounds::next`] returned for the bytes that it has sent.
    pub fn charge(&mut self, index: usize, size: Bytes) {
        self.credits[index].bytes -= i64::try_from(size.0).unwrap_or(i64::MAX / 2);
    }

    /// Removes the sub-queue that [`Rounds::next`] returned from its list, because it is empty. A new one joins the old
    /// list, unless that is empty.
    pub fn retire(&mut self) {
        if let Some(index) = self.new.pop_front() {
            if self.old.is_empty() {
                self.credits[index].is_listed = false;
            } else {
                self.old.push_back(index);
            }
        } else if let Some(index) = self.old.pop_front() {
            self.credits[index].is_listed = false;
        }
    }
}
