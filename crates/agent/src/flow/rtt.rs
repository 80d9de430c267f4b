//! Decodes the RTT histogram of the BPF programs, whose buckets are one byte each.

use super::record_event::{RTT_FIRST_OCTAVE, RTT_OCTAVES};

/// Number of buckets per power of two.
const PER_OCTAVE: u32 = 8;

/// Returns a percentile of the samples, to within 1/16 between 32 us and 8.4 s: the middle of its bucket, clamped to
/// the smallest and largest sample. `None` without samples.
pub fn percentile_us(histogram: &[u64; RTT_OCTAVES], percent: u64, smallest_us: u64, largest_us: u64) -> Option<u64> {
    let buckets = || histogram.iter().flat_map(|word| word.to_ne_bytes()).map(u64::from);
    let count: u64 = buckets().sum();
    let rank = (count * percent).div_ceil(100).max(1);
    let mut cumulative = 0;
    let bucket = buckets().position(|samples| {
        cumulative += samples;
        cumulative >= rank
    })?;
    Some(middle_us(bucket as u32).min(largest_us).max(smallest_us))
}

fn middle_us(bucket: u32) -> u64 {
    let octave = RTT_FIRST_OCTAVE + bucket / PER_OCTAVE;
    let width = 1u64 << (octave - PER_OCTAVE.ilog2());
    u64::from(PER_OCTAVE + bucket % PER_OCTAVE) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bucket in which the BPF program counts a value within the bounds of the histogram.
    fn bucket(rtt_us: u64) -> usize {
        let octave = rtt_us.ilog2();
        ((octave - RTT_FIRST_OCTAVE) * PER_OCTAVE) as usize + (rtt_us >> (octave - 3) & 7) as usize
    }

    fn histogram(samples: &[(u64, u8)]) -> [u64; RTT_OCTAVES] {
        let mut bytes = [0u8; 8 * RTT_OCTAVES];
        for (rtt_us, count) in samples {
            bytes[bucket(*rtt_us)] += count;
        }
        std::array::from_fn(|word| u64::from_ne_bytes(bytes[8 * word..8 * word + 8].try_into().unwrap()))
    }

    #[test]
    fn bucket_midpoints_are_within_6_percent_of_every_value_in_the_bucket() {
        for rtt_us in (32..2000).chain([10_000, 123_456, 999_999, 8_000_000]) {
            let middle = middle_us(bucket(rtt_us) as u32);
            assert!(middle.abs_diff(rtt_us) * 16 <= rtt_us, "{rtt_us} {middle}");
        }
    }

    #[test]
    fn a_percentile_has_the_corresponding_fraction_of_samples_below_it() {
        let histogram = histogram(&[(1_000, 95), (50_000, 5)]);
        let at = |percent| percentile_us(&histogram, percent, 900, 51_000).unwrap();
        assert!(at(95).abs_diff(1_000) < 60, "{}", at(95));
        assert!(at(96).abs_diff(50_000) < 3_000, "{}", at(96));
    }

    #[test]
    fn a_percentile_stays_within_the_range_of_the_samples() {
        assert_eq!(percentile_us(&histogram(&[(1_000, 3)]), 95, 1_000, 1_000), Some(1_000));
        assert_eq!(percentile_us(&[0; RTT_OCTAVES], 95, 0, 0), None);
    }
}
