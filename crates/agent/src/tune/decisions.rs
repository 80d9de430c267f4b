//! Counts the decisions of the BPF program about connections: when they open, from its counters; when they close, from
//! their events.

use crate::flow::reason::Reason;
use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_policy::{ArmId, Prefix};
use thalweg_units::Time;

/// Number of opened connections, by decision and chosen arm.
pub type Decisions = BTreeMap<(Reason, Option<ArmId>), u64>;

/// Number of closed connections, by decision and final algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed(BTreeMap<(Reason, Arc<str>), u64>);

impl Closed {
    /// Counts a connection.
    pub fn add(&mut self, reason: Reason, cc: &Arc<str>) {
        *self.0.entry((reason, Arc::clone(cc))).or_default() += 1;
    }

    /// Iterates over all counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, &str, u64)> {
        self.0.iter().map(|((reason, cc), count)| (*reason, &**cc, *count))
    }
}

/// Counts of each destination, for a bounded number of destinations.
#[derive(Debug)]
pub struct ByDestination {
    of: BTreeMap<(u32, Prefix), (Time, Closed)>,
    most: usize,
}

impl ByDestination {
    /// Returns an empty table for at most `most` destinations, and at least two.
    pub fn new(most: usize) -> ByDestination {
        ByDestination { of: BTreeMap::new(), most: most.max(2) }
    }

    /// Counts a connection of a network namespace to a destination. When full, drops at least half of the destinations:
    /// those with the oldest updates.
    pub fn add(&mut self, netns: u32, prefix: Prefix, reason: Reason, cc: &Arc<str>, now: Time) {
        let key = (netns, prefix);
        if self.of.len() >= self.most && !self.of.contains_key(&key) {
            let mut times: Vec<Time> = self.of.values().map(|(at, _)| *at).collect();
            let middle = times.len() / 2;
            let middle = *times.select_nth_unstable(middle).1;
            self.of.retain(|_, (at, _)| *at > middle);
        }
        let (at, closed) = self.of.entry(key).or_default();
        *at = now;
        closed.add(reason, cc);
    }

    /// Returns the counts of a destination.
    pub fn of(&self, netns: u32, prefix: Prefix) -> Option<&Closed> {
        self.of.get(&(netns, prefix)).map(|(_, closed)| closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_updated_destinations_are_evicted() {
        let mut all = ByDestination::new(8);
        let cc: Arc<str> = Arc::from("cubic");
        let to = |number: u64| format!("192.0.{number}.0/24").parse::<Prefix>().unwrap();
        (0..20).for_each(|number| all.add(7, to(number), Reason::Private, &cc, Time(number)));
        assert!((4..=8).contains(&all.of.len()));
        assert!(all.of(7, to(0)).is_none() && all.of(8, to(19)).is_none());
        all.add(7, to(19), Reason::Private, &cc, Time(20));
        let counts: Vec<_> = all.of(7, to(19)).unwrap().iter().collect();
        assert_eq!(counts, [(Reason::Private, "cubic", 2)]);
    }
}
