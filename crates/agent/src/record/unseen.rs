//! Connections of whose end the kernel will not tell: on kernels that do not let a walk ask for calls (6.1 among them), those
//! that were open before recording began, and those that another program has taken the calls from. Their last look stands for
//! their end.

use super::event::Event;
use super::packed::Packed;
use std::collections::HashMap;

/// The last look at each. There can be as many as connections: they are packed.
#[derive(Debug, Default)]
pub struct Unseen {
    walk: u64,
    last: HashMap<u64, (u64, Packed)>,
}

impl Unseen {
    /// A walk begins.
    pub fn begin(&mut self) {
        self.walk += 1;
    }

    /// A look at one of them.
    pub fn take(&mut self, event: &Event) {
        self.last.insert(event.connection, (self.walk, Packed::new(event)));
    }

    /// The kernel has told of its end after all.
    pub fn forget(&mut self, connection: u64) {
        self.last.remove(&connection);
    }

    /// A walk has ended: the last looks at those that it did not meet any more.
    pub fn end(&mut self) -> Vec<Event> {
        let walk = self.walk;
        let gone: Vec<u64> = self.last.iter().filter(|(_, (seen, _))| *seen != walk).map(|(which, _)| *which).collect();
        let mut events: Vec<Event> =
            gone.iter().filter_map(|which| self.last.remove(which)).map(|(_, last)| last.event()).collect();
        if self.last.len() < self.last.capacity() / 4 {
            self.last.shrink_to_fit();
        }
        events.sort_by_key(|event| (event.end_us, event.connection));
        events
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_a_walk_does_not_meet_any_more_is_told_of_once() {
        let look = |connection: u64, end_us: u64| Event { connection, end_us, ..Event::default() };
        let mut unseen = Unseen::default();
        unseen.begin();
        unseen.take(&look(1, 10));
        unseen.take(&look(2, 11));
        assert_eq!(unseen.end(), []);
        unseen.begin();
        unseen.take(&look(2, 21));
        assert_eq!(unseen.end(), [look(1, 10)]);
        unseen.begin();
        assert_eq!(unseen.end(), [look(2, 21)]);
        unseen.begin();
        assert_eq!(unseen.end(), []);
        assert!(unseen.is_empty());
    }

    #[test]
    fn a_connection_whose_end_was_told_after_all_is_not_told_of_again() {
        let mut unseen = Unseen::default();
        unseen.begin();
        unseen.take(&Event { connection: 1, ..Event::default() });
        unseen.forget(1);
        unseen.begin();
        assert_eq!(unseen.end(), []);
    }
}
