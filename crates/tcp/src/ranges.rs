//! A set of segment numbers as sorted, disjoint, non-adjacent ranges.
//!
//! Most changes are near the end or the front, where insertion into the ring buffer is cheap.

use std::collections::VecDeque;

/// Range from the first number up to, but not including, the second.
pub(crate) type Range = (u64, u64);

/// A set of segment numbers, as ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: VecDeque<Range>,
}

impl Ranges {
    /// Adds `start..end`, and calls `take_new` with the parts that were not in the set, in ascending order.
    pub fn insert(&mut self, start: u64, end: u64, mut take_new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // Index of the first range that touches the new one or lies beyond it.
        let first = match self.ranges.back() {
            None => 0,
            Some(&(last_start, last_end)) if start > last_end => {
                debug_assert!(last_start < last_end);
                self.ranges.len()
            }
            Some(&(last_start, _)) if start >= last_start => self.ranges.len() - 1,
            Some(_) => self.ranges.partition_point(|range| range.1 < start),
        };
        let mut merged = (start, end);
        let mut cursor = start;
        let mut behind = first;
        while let Some(&(old_start, old_end)) = self.ranges.get(behind) {
            if old_start > end {
                break;
            }
            if old_start > cursor {
                take_new(cursor, old_start);
            }
            cursor = cursor.max(old_end);
            merged = (merged.0.min(old_start), merged.1.max(old_end));
            behind += 1;
        }
        if cursor < end {
            take_new(cursor, end);
        }
        if behind == first {
            self.ranges.insert(first, merged);
            return;
        }
        self.ranges[first] = merged;
        if behind > first + 1 {
            self.ranges.drain(first + 1..behind);
        }
    }

    /// Removes every number below `limit`.
    pub fn remove_below(&mut self, limit: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 > limit {
                front.0 = front.0.max(limit);
                return;
            }
            self.ranges.pop_front();
        }
    }

    /// Returns the number after the highest one, if the set is not empty.
    pub fn end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }

    /// Returns the highest number from `floor` up to, but not including, `limit` that is not in the set.
    pub fn highest_missing(&self, floor: u64, limit: u64) -> Option<u64> {
        let candidate = limit.checked_sub(1)?;
        let behind = self.ranges.partition_point(|range| range.0 <= candidate);
        let missing = match behind.checked_sub(1).map(|at| self.ranges[at]) {
            Some((start, end)) if candidate < end => start.checked_sub(1)?,
            _ => candidate,
        };
        (missing >= floor).then_some(missing)
    }

    /// Returns the ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn inserting_returns_exactly_the_new_ranges(
            operations in prop::collection::vec((0u64..60, 0u64..9, any::<bool>()), 0..80),
        ) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            for (start, length, is_removal) in operations {
                if is_removal {
                    ranges.remove_below(start / 2);
                    model.retain(|number| *number >= start / 2);
                } else {
                    let mut new = Vec::new();
                    ranges.insert(start, start + length, |from, to| new.extend(from..to));
                    let expected: Vec<u64> = (start..start + length).filter(|n| model.insert(*n)).collect();
                    prop_assert_eq!(new, expected);
                }
                let covered: Vec<u64> = ranges.iter().flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(covered, model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.end(), model.last().map(|n| n + 1));
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0), "adjacent ranges merge: {all:?}");
                for limit in [0, 7, 30, 61] {
                    let missing = (3..limit).rev().find(|n| !model.contains(n));
                    prop_assert_eq!(ranges.highest_missing(3, limit), missing);
                }
            }
        }
    }
}
