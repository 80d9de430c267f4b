//! Counts of what the kernel's side decided about connections: as it counts them when they open, and as their events
//! report it when they have closed.

use crate::flow::reason::Reason;
use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_policy::{ArmId, Prefix};
use thalweg_units::Time;

/// Connections that were opened, by the decision and the arm that it names.
pub type Decisions = BTreeMap<(Reason, Option<ArmId>), u64>;

/// Connections that have closed, by the decision and their algorithm at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed(BTreeMap<(Reason, Arc<str>), u64>);

impl Closed {
    /// Counts a connection.
    pub fn add(&mut self, reason: Reason, cc: &Arc<str>) {
        *self.0.entry((reason, Arc::clone(cc))).or_default() += 1;
    }

    /// Every count.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, &str, u64)> {
        self.0.iter().map(|((reason, cc), count)| (*reason, &**cc, *count))
    }
}

/// The same of each destination, up to a number of them.
#[derive(Debug)]
pub struct ByDestination {
    of: BTreeMap<(u32, Prefix), (Time, Closed)>,
    most: usize,
}

impl ByDestination {
    /// Keeps at most `most` destinations, and at least two.
    pub fn new(most: usize) -> ByDestination {
        ByDestination { of: BTreeMap::new(), most: most.max(2) }
    }

    /// Counts a connection of a network namespace to a destination. When full, the half with the oldest updates is
    /// dropped.
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

    /// The counts of a destination.
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
