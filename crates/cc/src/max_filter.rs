//! The maximum of the samples of a sliding window, kept in three samples.
//!
//! ```text
//!        window
//!   |<------------------->|
//!   best     second  third     best >= second >= third in value, oldest to newest
//! ```
//!
//! The best sample is the answer. The other two are the best since then: when the best leaves the window, the second
//! takes its place. So that they are spread over the window, a second sample is taken in its second quarter and a third
//! in its second half, even if nothing was worth it. The answer is exact as long as the maximum is in the window; after
//! it has left, it may be lower than the true maximum for as long as a quarter of the window.
//!
//! Source: the windowed filter by Kathleen Nichols that Linux has in `lib/win_minmax.c`. Time is whatever the caller
//! counts in (BBR: rounds).

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
    /// A filter over the last `length` units of time that has seen nothing but `value` at time 0.
    pub fn new(length: u64, value: V) -> MaxFilter<V> {
        let first = Sample { at: 0, value };
        MaxFilter { length, best: first, second: first, third: first }
    }

    /// The maximum.
    pub fn max(&self) -> V {
        self.best.value
    }

    /// Takes a sample. Time never runs backwards.
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

    /// Drops what has left the window, and takes `sample` in where the window is not yet covered.
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
