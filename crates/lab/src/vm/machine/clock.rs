//! Compares a guest's clock with this machine's.
//!
//! The guest is asked for its time repeatedly. The time of its reading between request and response is unknown.
//! Therefore, the fastest response is used, with the middle of its round trip.

use thalweg_units::Span;

/// Number of requests to a guest.
pub(crate) const QUESTIONS: usize = 20;

/// A request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// Time of this machine's clock when the request was sent.
    pub from_ns: u64,
    pub until_ns: u64,
    /// Time of the guest's clock in the response.
    pub guest_ns: u64,
}

/// Offset of a guest's clock at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    best: ClockReading,
}

impl Comparison {
    /// Selects the reading with the fastest response; `None` without readings.
    pub fn of(readings: impl IntoIterator<Item = ClockReading>) -> Option<Comparison> {
        readings.into_iter().min_by_key(|reading| reading.until_ns - reading.from_ns).map(|best| Comparison { best })
    }

    /// Converts a time of this machine's clock to the guest's clock.
    pub fn guest_ns(&self, ours_ns: u64) -> u64 {
        self.best.guest_ns.saturating_add_signed(ours_ns as i64 - self.middle_ns() as i64)
    }

    /// Returns the maximum error of the comparison.
    pub fn uncertainty(&self) -> Span {
        Span((self.best.until_ns - self.best.from_ns) / 2)
    }

    /// Returns the drift of the guest's clock between this comparison and a later one, in parts per million.
    pub fn drift_ppm(&self, later: &Comparison) -> f64 {
        let elapsed_ns = (later.middle_ns() - self.middle_ns()) as f64;
        let guest_elapsed_ns = (later.best.guest_ns as f64) - (self.best.guest_ns as f64);
        (guest_elapsed_ns - elapsed_ns) / elapsed_ns * 1e6
    }

    fn middle_ns(&self) -> u64 {
        self.best.from_ns.midpoint(self.best.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(from_ns: u64, until_ns: u64, guest_ns: u64) -> ClockReading {
        ClockReading { from_ns, until_ns, guest_ns }
    }

    #[test]
    fn the_clock_offset_is_the_midpoint_of_the_fastest_round_trip() {
        let slow = reading(1_000_000, 9_000_000, 77);
        let comparison = Comparison::of([slow, reading(10_000_000, 10_400_000, 200_000), slow]).unwrap();
        assert_eq!(comparison.guest_ns(10_200_000), 200_000);
        assert_eq!(comparison.guest_ns(11_200_000), 1_200_000);
        assert_eq!(comparison.uncertainty(), Span(200_000));
        assert_eq!(Comparison::of([]), None);
    }

    #[test]
    fn a_clock_that_runs_too_fast_is_detected() {
        let before = Comparison::of([reading(1_000, 3_000, 500)]).unwrap();
        let after = Comparison::of([reading(1_000_001_000, 1_000_003_000, 1_000_100_500)]).unwrap();
        assert!((before.drift_ppm(&after) - 100.0).abs() < 0.01, "{}", before.drift_ppm(&after));
    }
}
