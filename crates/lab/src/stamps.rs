//! Converts between CLOCK_REALTIME, which the kernel's receive timestamps use, and CLOCK_MONOTONIC.
//!
//! Both clocks run at the same speed, but their difference changes, for example when the time of day is set. Therefore,
//! the difference is measured periodically.

use crate::clock::monotonic_ns;
use rustix::time::{ClockId, clock_gettime};

/// Minimum interval between two measurements: after the time of day is set, timestamps are wrong for about this time.
const INTERVAL_NS: u64 = 100_000_000;
/// Number of readings per measurement; the reading with the shortest duration is used.
const READINGS: u32 = 5;

/// Offset between the two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    realtime_at_zero_ns: i128,
    measured_at_ns: u64,
}

impl Stamps {
    /// Measures the offset.
    pub fn measure() -> Stamps {
        let reading = |_| {
            let before = monotonic_ns();
            let realtime = clock_gettime(ClockId::Realtime);
            let after = monotonic_ns();
            let realtime_ns = i128::from(realtime.tv_sec) * 1_000_000_000 + i128::from(realtime.tv_nsec);
            let middle = before + (after - before) / 2;
            (after - before, Stamps { realtime_at_zero_ns: realtime_ns - i128::from(middle), measured_at_ns: after })
        };
        let best = (0..READINGS).map(reading).min_by_key(|(width, _)| *width);
        best.expect("there are readings").1
    }

    /// Measures the offset again if the last measurement is too old.
    pub fn refresh(&mut self, monotonic_ns: u64) {
        if monotonic_ns.saturating_sub(self.measured_at_ns) >= INTERVAL_NS {
            *self = Stamps::measure();
        }
    }

    /// Converts a reading of CLOCK_MONOTONIC to CLOCK_REALTIME; zero if the result is before 1970.
    pub fn realtime_ns(&self, monotonic_ns: u64) -> u64 {
        u64::try_from(i128::from(monotonic_ns) + self.realtime_at_zero_ns).unwrap_or(0)
    }

    /// Converts a reading of CLOCK_REALTIME to CLOCK_MONOTONIC; zero if the result is before its start.
    pub fn monotonic_ns(&self, realtime_ns: u64) -> u64 {
        u64::try_from(i128::from(realtime_ns) - self.realtime_at_zero_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_between_two_clock_readings_lies_between_them() {
        let stamps = Stamps::measure();
        let before = monotonic_ns();
        let realtime = clock_gettime(ClockId::Realtime);
        let after = monotonic_ns();
        let stamp = stamps.monotonic_ns(realtime.tv_sec as u64 * 1_000_000_000 + realtime.tv_nsec as u64);
        // The error of a measurement is at most half of its duration, which is microseconds without interruptions.
        assert!((before - 1_000_000..=after + 1_000_000).contains(&stamp), "{before} {stamp} {after}");
    }
}
