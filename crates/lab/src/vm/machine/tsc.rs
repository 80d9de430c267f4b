//! The frequency of this machine's time-stamp counter (TSC), which guests with an emulated processor read too.
//!
//! Linux measures the frequency at boot against a timer (the PIT) whose counter wraps every 55 ms. If the emulator has
//! to wait that long for a busy machine, the measured frequency is too high, and the guest's clocks are slow. The
//! parameter `tsc_early_khz` (Linux 5.9) replaces this measurement.

use super::sys;
use crate::clock::monotonic_ns;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Time between the two readings; an error of a microsecond is then 50 ppm.
const INTERVAL: Duration = Duration::from_millis(20);

/// Number of attempts per reading, the fastest of which counts.
const ATTEMPTS: usize = 10;

/// Returns the frequency in kHz. The first call takes [`INTERVAL`].
pub(super) fn khz() -> u64 {
    static KHZ: OnceLock<u64> = OnceLock::new();
    *KHZ.get_or_init(measure)
}

fn measure() -> u64 {
    let (begin_ns, begin) = read();
    thread::sleep(INTERVAL);
    let (end_ns, end) = read();
    let elapsed_ns = u128::from(end_ns - begin_ns);
    (u128::from(end.wrapping_sub(begin)) * 1_000_000 / elapsed_ns) as u64
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds, and the TSC at this time.
fn read() -> (u64, u64) {
    let attempts = (0..ATTEMPTS).map(|_| {
        let before_ns = monotonic_ns();
        let tsc = sys::tsc();
        let after_ns = monotonic_ns();
        (after_ns - before_ns, (before_ns.midpoint(after_ns), tsc))
    });
    attempts.min_by_key(|(took_ns, _)| *took_ns).expect("there are attempts").1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frequency_is_the_same_over_a_longer_time() {
        let (begin_ns, begin) = read();
        let khz = khz();
        thread::sleep(Duration::from_millis(100));
        let (end_ns, end) = read();
        let expected = (end - begin) as f64 * 1e6 / (end_ns - begin_ns) as f64;
        assert!((khz as f64 / expected - 1.0).abs() < 0.005, "{khz} kHz, but {expected} kHz over a longer time");
    }
}
