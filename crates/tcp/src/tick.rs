//! Computes the actual expiry of a timer. Linux keeps the timers of connections in a timer wheel that advances by ticks
//! (kernel/time/timer.c).
//!
//! A wait is rounded up to whole ticks and counted from the last tick. The timer then expires at the first advance of
//! its level of the wheel after that: the next tick for waits below 63 ticks, the next multiple of 8 ticks below 504,
//! of 64 below 4032, and so on.
//!
//! A tick is 1 ms (`HZ` = 1000), and ticks begin with the experiment. Pacing and compressed ACKs use high-resolution
//! timers.

use thalweg_units::{Span, Time};

const TICK_NS: u64 = 1_000_000;
/// Waits of fewer ticks than this are in the first level of the wheel.
const FIRST_PART: u64 = 63;
/// log2 of the factor by which each level is coarser than the previous one.
const PART_SHIFT: u32 = 3;
const LAST_PART: u32 = 8;

/// Returns the expiry of a timer set at `now` to a wait of `after`.
pub(crate) fn expiry(now: Time, after: Span) -> Time {
    let ticks = after.0.div_ceil(TICK_NS);
    let part = (0..LAST_PART).find(|part| ticks < FIRST_PART << (PART_SHIFT * part)).unwrap_or(LAST_PART);
    let expires = (now.0 / TICK_NS).saturating_add(ticks);
    let shift = PART_SHIFT * part;
    Time((((expires >> shift) + 1) << shift).saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry_ms(now_us: u64, after_us: u64) -> u64 {
        let at = expiry(Time(now_us * 1_000), Span(after_us * 1_000)).0;
        assert_eq!(at % TICK_NS, 0, "timers expire at ticks");
        at / TICK_NS
    }

    #[test]
    fn a_short_timer_expires_one_or_two_ticks_late() {
        assert_eq!(expiry_ms(100_000, 40_000), 141);
        assert_eq!(expiry_ms(100_900, 40_000), 141);
        assert_eq!(expiry_ms(100_000, 40_001), 142);
    }

    #[test]
    fn a_longer_timer_expires_up_to_an_eighth_late() {
        assert_eq!(expiry_ms(100_000, 62_000), 163);
        assert_eq!(expiry_ms(100_000, 63_000), 168, "a multiple of 8");
        assert_eq!(expiry_ms(0, 240_000), 248);
        assert_eq!(expiry_ms(0, 1_000_000), 1_024, "a multiple of 64");
        for after_ms in 63..100_000 {
            let late = expiry_ms(0, after_ms * 1_000) - after_ms;
            assert!(late > 0 && late <= after_ms / 7, "{late} ms late after {after_ms}");
        }
    }
}
