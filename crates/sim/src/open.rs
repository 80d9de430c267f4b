//! The open connections, in the order in which they were opened, with their last samples.
//!
//! Every sample visits all of them. A vector is read sequentially, which processors prefetch, unlike the nodes of a
//! tree. Closed connections leave entries that are removed together once they are the majority.

use thalweg_trace::SampleRow;

#[derive(Debug, Default)]
pub(crate) struct Open {
    /// By ascending id.
    entries: Vec<Entry>,
    closed: usize,
}

#[derive(Debug)]
struct Entry {
    id: usize,
    is_open: bool,
    last: Option<SampleRow>,
}

impl Open {
    /// Adds a connection, whose id must exceed all earlier ones.
    pub(crate) fn insert(&mut self, id: usize) {
        debug_assert!(self.entries.last().is_none_or(|last| last.id < id), "ids are in ascending order");
        self.entries.push(Entry { id, is_open: true, last: None });
    }

    /// Removes a connection, if it is open.
    pub(crate) fn remove(&mut self, id: usize) {
        let Ok(at) = self.entries.binary_search_by_key(&id, |entry| entry.id) else { return };
        let entry = &mut self.entries[at];
        if !entry.is_open {
            return;
        }
        (entry.is_open, entry.last) = (false, None);
        self.closed += 1;
        if self.closed > self.entries.len() / 2 {
            self.entries.retain(|entry| entry.is_open);
            self.closed = 0;
        }
    }

    /// Returns the number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.closed
    }

    /// Returns the ids of the open connections, in ascending order.
    pub(crate) fn ids(&self) -> Vec<usize> {
        self.entries.iter().filter(|entry| entry.is_open).map(|entry| entry.id).collect()
    }

    /// Iterates over the open connections in ascending order of their ids, each with its last sample.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Option<SampleRow>)> {
        self.entries.iter_mut().filter(|entry| entry.is_open).map(|entry| (entry.id, &mut entry.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_are_still_open_keep_their_order_and_samples() {
        let mut open = Open::default();
        for id in 0..100 {
            open.insert(id);
        }
        for (id, last) in open.iter_mut() {
            *last = Some(SampleRow { t_us: id as u64, ..SampleRow::default() });
        }
        for id in (0..100).filter(|id| id % 10 != 3) {
            open.remove(id);
            open.remove(id);
        }
        open.insert(100);
        assert_eq!(open.len(), 11);
        assert_eq!(open.ids(), [3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 100]);
        let samples: Vec<_> = open.iter_mut().filter_map(|(id, last)| Some((id as u64, last.as_ref()?.t_us))).collect();
        assert_eq!(samples.len(), 10);
        assert!(samples.iter().all(|(id, t_us)| id == t_us), "{samples:?}");
    }
}
