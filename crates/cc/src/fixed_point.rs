//! The fixed-point arithmetic of BBR, with the units of Linux.
//!
//! A bandwidth is in packets per microsecond, in units of 2^-24; a gain is in units of 1/256. Products have 64 or 128
//! bits, so that they do not wrap.

use thalweg_units::{Bytes, Packets, Rate, Span};

/// A bandwidth of one packet per microsecond is 2 to this power.
const BANDWIDTH_SHIFT: u32 = 24;

/// Percentage by which the pacing rate is below the bandwidth, so that queues drain.
const PACING_MARGIN_PERCENT: u128 = 1;

/// A factor in units of 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gain(u32);

impl Gain {
    /// 0.
    pub const ZERO: Gain = Gain(0);
    /// 1.
    pub const UNIT: Gain = Gain(256);
    /// 2/ln 2: the smallest gain that doubles the delivery rate each round; rounded up, as in Linux.
    pub const STARTUP: Gain = Gain(256 * 2885 / 1000 + 1);
    /// ln 2 / 2: drains the queue of Startup's last round in one round.
    pub const DRAIN: Gain = Gain(256 * 1000 / 2885);
    /// 1.25: the growth of the bandwidth per round below which the pipe may be full.
    pub const FULL_PIPE_GROWTH: Gain = Gain(256 * 5 / 4);

    /// Returns the gain of `value` hundredths, rounded down.
    pub const fn hundredths(value: u32) -> Gain {
        Gain(256 * value / 100)
    }

    /// Returns the next larger gain.
    pub const fn next(self) -> Gain {
        Gain(self.0 + 1)
    }

    /// Returns the gain nearest to `value`.
    pub fn of(value: f64) -> Gain {
        Gain((value * 256.0).round() as u32)
    }

    /// Returns 2 minus the gain, which is as far below 1 as the gain is above.
    pub fn complement(self) -> Gain {
        Gain(512u32.saturating_sub(self.0))
    }

    /// Returns the gain of `value` 256ths.
    pub fn from_raw(value: u32) -> Gain {
        Gain(value)
    }

    /// Returns the gain in 256ths.
    pub const fn raw(self) -> u64 {
        self.0 as u64
    }

    /// Returns the gain as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 256.0
    }
}

/// A bandwidth in packets per microsecond, in units of 2^-24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bandwidth(u32);

impl Bandwidth {
    /// Zero: unknown.
    pub const ZERO: Bandwidth = Bandwidth(0);

    /// The smallest bandwidth: one packet per 17 s.
    pub const SMALLEST: Bandwidth = Bandwidth(1);

    /// Returns the bandwidth that carries `packets` in `span`, which is at least a microsecond. The result is limited
    /// to the range of the type and at least [`SMALLEST`](Self::SMALLEST).
    pub fn of(packets: Packets, span: Span) -> Bandwidth {
        let value = (u128::from(packets.0) << BANDWIDTH_SHIFT) / u128::from(span.as_micros());
        Bandwidth(u32::try_from(value).unwrap_or(u32::MAX).max(1))
    }

    /// Like [`of`](Self::of), but rounds up, so that growth of a low rate is not lost.
    pub fn of_rounded_up(packets: Packets, span: Span) -> Bandwidth {
        let value = (u128::from(packets.0) << BANDWIDTH_SHIFT).div_ceil(u128::from(span.as_micros()));
        Bandwidth(u32::try_from(value).unwrap_or(u32::MAX).max(1))
    }

    /// Returns the bandwidth of `value` * 2^-24 packets per microsecond.
    pub fn from_raw(value: u64) -> Bandwidth {
        Bandwidth(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Returns the bandwidth in packets per microsecond, times 2^24.
    pub fn raw(self) -> u64 {
        u64::from(self.0)
    }

    /// Returns the number of packets in `span`, rounded down.
    pub fn packets_in(self, span: Span) -> Packets {
        packets((u128::from(self.0) * u128::from(span.as_micros())) >> BANDWIDTH_SHIFT)
    }

    /// Returns `gain` times the number of packets in `span`, rounded up.
    pub fn packets_in_with_gain(self, span: Span, gain: Gain) -> Packets {
        let value = (u128::from(self.0) * u128::from(span.as_micros()) * u128::from(gain.0)) >> 8;
        packets(value.div_ceil(1 << BANDWIDTH_SHIFT))
    }

    /// Returns `gain` times the bandwidth.
    pub fn scale(self, gain: Gain) -> Bandwidth {
        let value = (u64::from(self.0) * u64::from(gain.0)) >> 8;
        Bandwidth(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Returns the absolute difference to `other`.
    pub fn abs_diff(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.abs_diff(other.0))
    }

    /// Whether the bandwidth is at most an eighth of `other`.
    pub fn is_within_an_eighth_of(self, other: Bandwidth) -> bool {
        u64::from(self.0) * 8 <= u64::from(other.0)
    }

    /// Returns the mean of the bandwidth and `other`.
    pub fn midpoint(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.midpoint(other.0))
    }

    /// Returns the pacing rate in payload bits per second for packets of `mss`: `gain` times the bandwidth, less the
    /// margin.
    pub fn pacing_rate(self, mss: Bytes, gain: Gain) -> Rate {
        // The order of operations determines the rounding, which is Linux's.
        let scaled = (u128::from(self.0) * u128::from(mss.0) * u128::from(gain.0)) >> 8;
        let per_second = (scaled * (1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT))) >> BANDWIDTH_SHIFT;
        rate(per_second)
    }

    /// Returns the bandwidth in payload bits per second, with packets of `mss`.
    pub fn rate(self, mss: Bytes) -> Rate {
        rate((u128::from(self.0) * u128::from(mss.0) * 1_000_000) >> BANDWIDTH_SHIFT)
    }
}

fn packets(value: u128) -> Packets {
    Packets(u64::try_from(value).unwrap_or(u64::MAX))
}

fn rate(bytes_per_second: u128) -> Rate {
    Rate(u64::try_from(bytes_per_second.saturating_mul(8)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Bandwidth, Gain};
    use thalweg_units::{MSS, Packets, Rate, Span};

    #[test]
    fn the_slowest_path_is_still_paced_and_the_fastest_does_not_wrap() {
        let slowest = Bandwidth::of(Packets(1), Span::from_secs(1_000)).pacing_rate(MSS, Gain::UNIT);
        assert!(slowest > Rate::ZERO && slowest < Rate(1_000), "{slowest}");
        let fastest = Bandwidth::of(Packets(1_000_000), Span::from_micros(1)).pacing_rate(MSS, Gain::STARTUP);
        assert!(fastest > Rate(8_000_000_000_000) && fastest < Rate(9_000_000_000_000), "{fastest}");
    }

    #[test]
    fn a_bandwidth_converts_back_to_its_packets() {
        let span = Span::from_millis(40);
        for packets in [1, 7, 173, 90_000] {
            let bw = Bandwidth::of(Packets(packets), span);
            assert_eq!(bw.packets_in_with_gain(span, Gain::UNIT), Packets(packets));
            assert_eq!(bw.packets_in_with_gain(span, Gain::of(2.0)), Packets(2 * packets));
        }
    }
}
