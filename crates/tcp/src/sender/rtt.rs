//! Estimates the smoothed round-trip time, the smallest of the last five minutes, and the retransmission timeout.
//!
//! Implements RFC 6298 with Linux's changes: the variation rises slowly when round-trip times fall, the largest
//! variation of each round trip counts, and the variation, not the timeout, has a lower bound of 200 ms.
//!
//! The smallest round-trip time is a windowed minimum that keeps the best, second best and third best of staggered
//! parts of the window (Kathleen Nichols' estimator), so that the old minimum expires without a jump to the latest
//! sample.

use thalweg_units::{Span, Time};

/// Lower bound of the variation term: TCP_RTO_MIN.
pub(super) const RTO_MIN: Span = Span::from_millis(200);
/// Upper bound of the timeout: TCP_RTO_MAX.
pub(super) const RTO_MAX: Span = Span::from_secs(120);
/// The timeout before the first sample (RFC 6298, section 2.1).
pub(super) const RTO_INITIAL: Span = Span::from_secs(1);
/// Window of the minimum filter: net.ipv4.tcp_min_rtt_wlen.
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// Round-trip time estimator. Spans are below 2^60 ns, so eight times a span fits in 63 bits.
#[derive(Debug)]
pub(super) struct Rtt {
    /// Eight times the smoothed round-trip time, in ns; 0 before the first sample.
    srtt_8: i64,
    /// Four times the mean deviation, in ns.
    deviation_4: i64,
    /// Maximum `deviation_4` in this round trip, at least [`RTO_MIN`].
    deviation_4_max: i64,
    /// Variation term: what the timeout adds to the smoothed round-trip time, in ns.
    variation: i64,
    /// The round trip ends when this segment is acknowledged.
    round_end: u64,
    rto: Span,
    min: WindowedMin,
}

impl Rtt {
    pub fn new() -> Rtt {
        Rtt {
            srtt_8: 0,
            deviation_4: 0,
            deviation_4_max: 0,
            variation: RTO_INITIAL.0 as i64,
            round_end: 0,
            rto: RTO_INITIAL,
            min: WindowedMin::default(),
        }
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        (self.srtt_8 != 0).then_some(Span((self.srtt_8 >> 3) as u64))
    }

    /// Returns the smallest round-trip time in the window; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Span> {
        self.min.best()
    }

    /// Returns the timeout, including backoff.
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// Doubles the timeout.
    pub fn back_off(&mut self) {
        self.rto = Span(self.rto.0 * 2).min(RTO_MAX);
    }

    /// Adds a sample and ends any backoff. `una` and `next` delimit the segments in flight.
    pub fn sample(&mut self, rtt: Span, una: u64, next: u64) {
        let rtt = rtt.0.clamp(1, 1 << 59) as i64;
        let floor = RTO_MIN.0 as i64;
        if self.srtt_8 == 0 {
            self.srtt_8 = rtt << 3;
            self.deviation_4 = rtt << 1;
            self.variation = self.deviation_4.max(floor);
            self.deviation_4_max = self.variation;
            self.round_end = next;
        } else {
            let error = rtt - (self.srtt_8 >> 3);
            self.srtt_8 = (self.srtt_8 + error).max(1);
            let mut change = error.abs() - (self.deviation_4 >> 2);
            // A round trip shorter than expected widens the variation eight times more slowly than a longer one.
            if error < 0 && change > 0 {
                change >>= 3;
            }
            self.deviation_4 += change;
            if self.deviation_4 > self.deviation_4_max {
                self.deviation_4_max = self.deviation_4;
                self.variation = self.variation.max(self.deviation_4_max);
            }
            if una > self.round_end {
                if self.deviation_4_max < self.variation {
                    self.variation -= (self.variation - self.deviation_4_max) >> 2;
                }
                self.round_end = next;
                self.deviation_4_max = floor;
            }
        }
        self.rto = Span(((self.srtt_8 >> 3) + self.variation) as u64).min(RTO_MAX);
    }

    /// Adds a sample to the minimum filter. A sample that a delayed ACK has probably increased is ignored, unless it is
    /// a new minimum.
    pub fn sample_min(&mut self, now: Time, rtt: Span, is_ack_delayed: bool) {
        if is_ack_delayed && self.min.best().is_some_and(|best| rtt > best) {
            return;
        }
        self.min.add(now, Span(rtt.0.max(1)), MIN_RTT_WINDOW);
    }
}

/// The best samples of three staggered parts of a sliding window as (time, RTT), each at least as recent and as large
/// as the previous one.
#[derive(Debug, Default)]
struct WindowedMin {
    best: Option<[(Time, Span); 3]>,
}

impl WindowedMin {
    fn best(&self) -> Option<Span> {
        self.best.map(|best| best[0].1)
    }

    fn add(&mut self, now: Time, value: Span, window: Span) {
        let sample = (now, value);
        let Some([first, second, third]) = &mut self.best else {
            self.best = Some([sample; 3]);
            return;
        };
        if value <= first.1 || now.since(third.0) > window {
            self.best = Some([sample; 3]);
            return;
        }
        if value <= second.1 {
            (*second, *third) = (sample, sample);
        } else if value <= third.1 {
            *third = sample;
        }
        let age = now.since(first.0);
        if age > window {
            (*first, *second, *third) = (*second, *third, sample);
            if now.since(first.0) > window {
                (*first, *second) = (*second, *third);
            }
        } else if second.0 == first.0 && age.0 > window.0 / 4 {
            // A quarter of the window has passed without a second-best sample: use the current one.
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age.0 > window.0 / 2 {
            *third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_rto_is_three_times_the_first_sample_with_at_least_200_ms_of_variation() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.sample(Span::from_millis(50), 0, 1);
        assert_eq!(rtt.rto(), Span::from_millis(250));
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_millis(300), 0, 1);
        assert_eq!(rtt.rto(), Span::from_millis(900));
    }

    #[test]
    fn a_steady_round_trip_time_brings_the_timeout_down_to_it_plus_200_ms() {
        let mut rtt = Rtt::new();
        for una in 0..200 {
            rtt.sample(Span::from_millis(300), una, una + 1);
        }
        assert_eq!(rtt.srtt(), Some(Span::from_millis(300)));
        let excess_ms = rtt.rto().as_millis() - 500;
        assert!(excess_ms < 2, "{:?}", rtt.rto());
    }

    #[test]
    fn a_sample_resets_the_backoff_which_is_limited_to_two_minutes() {
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_millis(50), 0, 1);
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_secs(120));
        rtt.sample(Span::from_millis(50), 1, 2);
        assert!(rtt.rto() <= Span::from_millis(250));
    }

    #[test]
    fn the_min_rtt_expires_after_five_minutes() {
        let mut rtt = Rtt::new();
        let mut at = |second: u64, ms: u64| {
            rtt.sample_min(Time(second * 1_000 * MS), Span(ms * MS), false);
            rtt.min_rtt().expect("there was a sample").as_millis()
        };
        assert_eq!(at(0, 20), 20);
        for second in 1..300 {
            assert_eq!(at(second, 40), 20);
        }
        assert_eq!(at(301, 45), 40);
    }

    #[test]
    fn a_delayed_ack_does_not_raise_the_min_rtt() {
        let mut rtt = Rtt::new();
        rtt.sample_min(Time(0), Span(20 * MS), false);
        rtt.sample_min(Time(400_000 * MS), Span(60 * MS), true);
        assert_eq!(rtt.min_rtt(), Some(Span(20 * MS)));
    }
}
