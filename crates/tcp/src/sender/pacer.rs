//! Departure times of bursts.

use thalweg_units::{Bytes, Rate, Span, Time};

/// Maximum size of a burst in bytes: 64 KiB less the headers and one byte (sk_gso_max_size).
pub(super) const BURST_MAX: u64 = 65_536 - 320 - 1;
/// Number of segments sent before pacing begins.
const UNPACED_SEGMENTS: u64 = 10;

/// Departure of the next burst, and the burst that is leaving.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// Earliest departure of the next burst; for an unpaced connection, departure of the latest burst.
    pub departure: Time,
    /// Whether data is waiting for the departure.
    pub is_waiting: bool,
    /// Number of segments of the current burst that are not yet sent.
    pub left: u64,
    /// Number of segments of the current burst.
    pub size: u64,
    /// Payload bytes of the current burst sent so far.
    bytes: u64,
    /// Lateness of the current burst's start.
    lag: Span,
}

impl Pacer {
    /// Starts a burst of `segments`.
    pub fn begin(&mut self, now: Time, segments: u64) {
        self.lag = now.since(self.departure);
        self.departure = self.departure.max(now);
        self.left = segments;
        self.size = segments;
        self.bytes = 0;
    }

    /// Records that a segment of the burst was sent. After the last one, computes the next departure. `rate` is set if
    /// the connection is paced.
    pub fn on_sent(&mut self, len: u32, segments_sent: u64, rate: Option<Rate>) {
        self.bytes += u64::from(len);
        self.left = self.left.saturating_sub(1);
        if self.left > 0 || segments_sent < UNPACED_SEGMENTS {
            return;
        }
        let Some(rate) = rate.filter(|rate| *rate != Rate::ZERO && *rate != Rate(u64::MAX)) else {
            return;
        };
        let length = rate.time_to_send(Bytes(self.bytes));
        let synthetic = self.lag.min(Span(length.0 / 2));
        self.departure += length.saturating_sub(synthetic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_late_burst_is_compensated_by_at_most_half_of_its_length() {
        let rate = Some(Rate::from_mbps(8)); // 1000 bytes per millisecond
        let mut pacer = Pacer { departure: Time(100 * MS), ..Pacer::default() };
        pacer.begin(Time(100 * MS), 2);
        pacer.on_sent(1000, 50, rate);
        assert_eq!(pacer.departure, Time(100 * MS), "the burst is not over");
        pacer.on_sent(1000, 51, rate);
        assert_eq!(pacer.departure, Time(102 * MS));
        pacer.begin(Time(102 * MS + MS / 2), 2);
        pacer.on_sent(1000, 52, rate);
        pacer.on_sent(1000, 53, rate);
        assert_eq!(pacer.departure, Time(104 * MS), "half a millisecond late, fully compensated");
        pacer.begin(Time(200 * MS), 2);
        pacer.on_sent(1000, 54, rate);
        pacer.on_sent(1000, 55, rate);
        assert_eq!(pacer.departure, Time(201 * MS), "far too late: half of the burst is compensated");
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer::default();
        for sent in 1..10 {
            pacer.begin(Time(5), 1);
            pacer.on_sent(1448, sent, Some(Rate::from_mbps(1)));
            assert_eq!(pacer.departure, Time(5));
        }
        pacer.begin(Time(5), 1);
        pacer.on_sent(1448, 10, Some(Rate::from_mbps(1)));
        assert!(pacer.departure > Time(11 * MS));
    }
}
