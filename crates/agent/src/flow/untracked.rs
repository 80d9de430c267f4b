//! Keeps the last samples of connections whose close the kernel does not report (`flag::BLIND`), to be used as their
//! close. Such connections exist on kernels that do not permit iterators to set callbacks, such as 6.1.

use super::packed::Packed;
use super::record_event::RecordEvent;
use std::collections::HashMap;

/// The latest sample of each such connection.
#[derive(Debug, Default)]
pub struct Untracked {
    last: HashMap<u64, Packed>,
}

impl Untracked {
    /// Records a sample.
    pub fn take(&mut self, event: &RecordEvent) {
        self.last.insert(event.connection, Packed::new(event));
    }

    /// Removes and returns the latest sample of a closed connection, if there is one.
    pub fn remove(&mut self, connection: u64) -> Option<RecordEvent> {
        // Usually the case.
        if self.is_empty() {
            return None;
        }
        let last = self.last.remove(&connection)?;
        if self.last.len() < self.last.capacity() / 4 {
            self.last.shrink_to_fit();
        }
        Some(last.event())
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sample_of_a_connection_is_kept_until_it_closes() {
        let snapshot = |connection: u64, end_us: u64| RecordEvent { connection, end_us, ..RecordEvent::default() };
        let mut untracked = Untracked::default();
        untracked.take(&snapshot(1, 10));
        untracked.take(&snapshot(2, 11));
        untracked.take(&snapshot(1, 20));
        assert_eq!(untracked.remove(1), Some(snapshot(1, 20)));
        assert_eq!((untracked.remove(1), untracked.is_empty()), (None, false));
        assert_eq!((untracked.remove(2), untracked.is_empty()), (Some(snapshot(2, 11)), true));
    }
}
