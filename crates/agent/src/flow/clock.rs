//! Converts the kernel's monotonic timestamps to wall-clock times.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// A larger change of the offset between two readings counts as a step. Slewing does not change the offset, because it
/// adjusts both clocks (clock_gettime(2)).
const STEP_US: u64 = 50_000;

/// Readings that take this long were interrupted, and are repeated.
const PROMPT_US: u64 = 1_000;

const ATTEMPTS: usize = 10;

/// Converts CLOCK_MONOTONIC to wall-clock time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// UNIX time minus monotonic time.
    offset_us: i128,
    steps: u64,
}

impl Clock {
    /// Reads the offset.
    pub fn now() -> Clock {
        let (monotonic_us, unix_us) = read();
        Clock { offset_us: difference(monotonic_us, unix_us), steps: 0 }
    }

    /// Reads the offset again, and counts a step of the wall clock.
    pub fn update(&mut self) {
        let (monotonic_us, unix_us) = read();
        self.set(monotonic_us, unix_us);
    }

    fn set(&mut self, monotonic_us: u64, unix_us: u64) {
        let offset_us = difference(monotonic_us, unix_us);
        self.steps += u64::from(offset_us.abs_diff(self.offset_us) > u128::from(STEP_US));
        self.offset_us = offset_us;
    }

    /// Converts a CLOCK_MONOTONIC timestamp to UNIX time.
    pub fn unix_us(&self, monotonic_us: u64) -> u64 {
        u64::try_from(i128::from(monotonic_us) + self.offset_us).unwrap_or(0)
    }

    /// Returns the number of steps of the wall clock.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

fn difference(monotonic_us: u64, unix_us: u64) -> i128 {
    i128::from(unix_us) - i128::from(monotonic_us)
}

/// Returns the monotonic and the wall-clock time of one moment, in microseconds: the former is the middle of readings
/// before and after the latter.
fn read() -> (u64, u64) {
    let mut both = (0, 0);
    for _ in 0..ATTEMPTS {
        let before = monotonic_us();
        let unix_us = microseconds(clock_gettime(ClockId::Realtime));
        let after = monotonic_us();
        both = (before + (after - before) / 2, unix_us);
        if after - before < PROMPT_US {
            break;
        }
    }
    both
}

/// Reads CLOCK_MONOTONIC, in microseconds.
pub fn monotonic_us() -> u64 {
    microseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the length of a jiffy, the kernel's unit of some times: the resolution of its coarse clocks.
pub fn jiffy_ns() -> u64 {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    u64::try_from(resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec).unwrap_or_default().max(1_000)
}

fn microseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_step_is_counted_and_applied_and_slewing_is_not_a_step() {
        let mut clock = Clock { offset_us: 1_000_000, steps: 0 };
        assert_eq!(clock.unix_us(500), 1_000_500);
        clock.set(10_000_000, 11_005_000);
        assert_eq!((clock.steps(), clock.unix_us(10_000_000)), (0, 11_005_000));
        clock.set(20_000_000, 3_621_005_000);
        assert_eq!((clock.steps(), clock.unix_us(20_000_000)), (1, 3_621_005_000));
        clock.set(30_000_000, 31_005_000);
        assert_eq!((clock.steps(), clock.unix_us(30_000_001)), (2, 31_005_001));
    }

    #[test]
    fn the_converted_time_matches_the_system_clock() {
        let clock = Clock::now();
        let unix_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let converted_us = u128::from(clock.unix_us(monotonic_us()));
        assert!(converted_us.abs_diff(unix_us) < 60_000_000, "{converted_us} {unix_us}");
    }

    #[test]
    fn a_jiffy_is_one_to_ten_milliseconds() {
        assert!((999_000..=10_000_000).contains(&jiffy_ns()), "{}", jiffy_ns());
    }
}
