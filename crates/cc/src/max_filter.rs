//! The maximum of the samples of a sliding window, kept in three samples.
//!
//! ```text
//!        window
//!   |<------------------->|
//!   best     second  third     best >= second >= third in value, oldest to newest
//! ```
//!
//! The best sample is the result. The other two are the best of the later samples: when the best leaves the window, the
//! second replaces it. To spread them over the window, a second sample is taken in its second quarter and a third in
//! its second half, even if their values are low. Once a best sample has left the window, the result may be lower than
//! the true maximum.
//!
//! Source: the windowed filter by Kathleen Nichols that Linux has in `lib/win_minmax.c`. The caller defines the unit of
//! time.

/// A windowed maximum over values of type `V`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxFilter<V> {
    length: u64,
    best: Sample<V>,
    second: Sample<V>,
    third: Sample<V>,
}

#[derive(Clone, Copy, Debug)]
struct Sample<V> {
    at: u64,
    value: V,
}

impl<V: Copy + Ord> MaxFilter<V> {
    /// Creates a filter over the last `length` units of time, with `value` at time 0 as its only sample.
    pub fn new(length: u64, value: V) -> MaxFilter<V> {
        let first = Sample { at: 0, value };
        MaxFilter { length, best: first, second: first, third: first }
    }

    /// Returns the maximum.
    pub fn max(&self) -> V {
        self.best.value
    }

    /// Returns the three samples, each with the time at which it was taken.
    pub fn samples(&self) -> [(u64, V); 3] {
        [self.best, self.second, self.third].map(|sample| (sample.at, sample.value))
    }

    /// Adds a sample. `at` must not decrease.
    pub fn update(&mut self, at: u64, value: V) {
        let sample = Sample { at, value };
        if value >= self.best.value || at - self.third.at > self.length {
            *self = MaxFilter { length: self.length, best: sample, second: sample, third: sample };
            return;
        }
        if value >= self.second.value {
            self.second = sample;
            self.third = sample;
        } else if value >= self.third.value {
            self.third = sample;
        }
        self.expire(sample);
    }

    /// Drops samples that have left the window, and uses `sample` for the parts of the window that have none.
    fn expire(&mut self, sample: Sample<V>) {
        let age = sample.at - self.best.at;
        if age > self.length {
            self.promote(sample);
            if sample.at - self.best.at > self.length {
                self.promote(sample);
            }
        } else if self.second.at == self.best.at && age > self.length / 4 {
            self.second = sample;
            self.third = sample;
        } else if self.third.at == self.second.at && age > self.length / 2 {
            self.third = sample;
        }
    }

    fn promote(&mut self, newest: Sample<V>) {
        self.best = self.second;
        self.second = self.third;
        self.third = newest;
    }
}

#[cfg(test)]
mod tests {
    use super::MaxFilter;
    use proptest::prelude::*;

    #[test]
    fn a_peak_expires_after_the_window_and_the_maximum_since_then_replaces_it() {
        let mut filter = MaxFilter::new(10, 0);
        filter.update(1, 100);
        for at in 2..=11 {
            // After the maximum has left the window, the best remaining sample is in the middle of the window.
            filter.update(at, if at == 7 { 50 } else { 20 });
            assert_eq!(filter.max(), 100, "at {at}");
        }
        filter.update(12, 20);
        assert_eq!(filter.max(), 50);
    }

    #[test]
    fn after_a_gap_longer_than_the_window_the_newest_sample_is_the_maximum() {
        let mut filter = MaxFilter::new(10, 0);
        filter.update(1, 100);
        filter.update(30, 5);
        assert_eq!(filter.max(), 5);
    }

    proptest! {
        #[test]
        fn the_result_lies_between_the_newest_sample_and_the_maximum_of_the_window(
            samples in prop::collection::vec((0..4u64, 0..1000u32), 1..100),
        ) {
            let mut filter = MaxFilter::new(10, 0);
            let (mut now, mut seen) = (0, vec![(0, 0)]);
            for (step, value) in samples {
                now += step;
                seen.push((now, value));
                filter.update(now, value);
                let max = seen.iter().filter(|(at, _)| now - at <= 10).map(|(_, value)| *value).max();
                prop_assert!(filter.max() >= value && Some(filter.max()) <= max, "{} at {now}: {seen:?}", filter.max());
                let fresh = seen.iter().filter(|(at, _)| now - at <= 2).map(|(_, value)| *value).max();
                prop_assert!(Some(filter.max()) >= fresh, "{} at {now}: {seen:?}", filter.max());
            }
        }
    }
}
