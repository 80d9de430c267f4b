//! Quantiles of times in whole microseconds, in little memory: counts in buckets that are 1/64 of their power of two
//! wide, so that a bucket's middle is off by less than 0.8 %.

use thalweg_units::Span;

/// Buckets in each power of two.
const PER_OCTAVE: u64 = 64;
const SHIFT: u32 = PER_OCTAVE.ilog2();

/// Counts of spans of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    counts: Vec<u32>,
    count: u64,
    sum: u128,
    min: Option<Span>,
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, span: Span) {
        self.add_many(span, 1);
    }

    /// Counts several spans of the same length.
    pub fn add_many(&mut self, span: Span, count: u32) {
        if count == 0 {
            return;
        }
        let bucket = bucket(span.0 / 1_000);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
        self.count += u64::from(count);
        self.sum += u128::from(span.0) * u128::from(count);
        self.min = Some(self.min.map_or(span, |min| min.min(span)));
    }

    /// Returns the number of spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the minimum; `None` without values.
    pub fn min_us(&self) -> Option<f64> {
        self.min.map(|min| min.0 as f64 / 1e3)
    }

    /// Returns the mean; `None` without values.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e3)
    }

    /// Returns the quantile at `per_mille` thousandths: the middle of its bucket. `None` without values.
    pub fn quantile_us(&self, per_mille: u64) -> Option<f64> {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut cumulative = 0;
        let at = self.counts.iter().position(|count| {
            cumulative += u64::from(*count);
            cumulative >= rank
        })?;
        Some(middle(at))
    }
}

/// Values below [`PER_OCTAVE`] have a bucket each.
fn bucket(us: u64) -> usize {
    let octave = us.max(PER_OCTAVE).ilog2() - SHIFT;
    (u64::from(octave) * PER_OCTAVE + (us >> octave)) as usize
}

fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let low = (bucket - octave * PER_OCTAVE) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_one_percent_of_its_bucket_midpoint() {
        for us in (0..200).chain((8..40).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 2))])) {
            let middle = middle(bucket(us));
            assert!((middle - us as f64).abs() <= 0.01 * us as f64, "{us} {middle}");
        }
    }

    #[test]
    fn percentiles_of_known_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_us(500), None);
        for us in 1..=100 {
            histogram.add(Span::from_micros(us));
        }
        assert_eq!(histogram.quantile_us(500), Some(50.0));
        assert_eq!(histogram.quantile_us(990), Some(99.0));
        assert_eq!(histogram.min_us(), Some(1.0));
        assert_eq!(histogram.mean_us(), Some(50.5));
    }
}
