//! The delivery-rate sampler (draft-cheng-iccrg-delivery-rate-estimation): the rate at which the data in flight was
//! delivered.
//!
//! Every segment stores the delivery state at its departure. When it is delivered, the difference to the current state
//! yields a rate over about one round trip. The interval is the longer of the send and ACK intervals, so neither a
//! burst of segments nor a burst of ACKs appears as a faster path. Segments sent while the application did not fill the
//! pipe are marked, since their rate is that of the application.

use super::scoreboard::{Flags, Segment, SendCounts, since};
use thalweg_cc::RateSample;
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

#[derive(Debug, Default)]
pub(super) struct RateSampler {
    /// Number of delivered segments. The SYN counts, as in Linux, and so do spurious copies (reported by D-SACK).
    pub delivered: u64,
    /// Time at which the latest segment was acknowledged, or at which data was last sent with nothing outstanding, if
    /// that is later.
    pub delivered_at: Time,
    /// Send time of the most recently sent segment that the latest ACK delivered, or the time at which data was last
    /// sent with nothing outstanding, if that event is later.
    first_sent_at: Time,
    /// Samples are application-limited until more than this number of segments are delivered.
    app_limited_until: Option<u64>,
    /// The latest sample with a valid interval; an application-limited one replaces an earlier one only if it is at
    /// least as fast.
    best: Option<RateSample>,
}

/// Deliveries of one ACK, collected step by step.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    newest: Option<Newest>,
}

#[derive(Debug)]
struct Newest {
    seq: u64,
    prior_delivered: u64,
    prior_at: Time,
    counts: SendCounts,
    send_interval: Span,
    is_app_limited: bool,
}

/// Counts since the start of the connection, besides deliveries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// Segments deemed lost.
    pub lost: u64,
    /// Segments whose acknowledgement reported a mark.
    pub marked: u64,
}

impl Delivery {
    /// Adds the `rest` of its burst to the segments in flight when `seq` was sent, if `seq` is the most recently sent
    /// segment: as in Linux, the count is that after the complete burst was sent.
    pub fn count_burst(&mut self, seq: u64, rest: u64) {
        if let Some(newest) = self.newest.as_mut().filter(|newest| newest.seq == seq) {
            newest.counts.inflight = newest.counts.inflight.saturating_add(rest as u32);
        }
    }

    /// Returns the count of deliveries when the most recently sent of the segments departed.
    pub fn prior_delivered(&self) -> Option<u64> {
        self.newest.as_ref().map(|newest| newest.prior_delivered)
    }
}

impl RateSampler {
    /// Whether samples of segments sent now are application-limited.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Marks the next samples as application-limited.
    pub fn set_app_limited(&mut self, in_flight: Packets) {
        self.app_limited_until = Some((self.delivered + in_flight.0).max(1));
    }

    /// Restarts the intervals: nothing is outstanding, and a segment is about to be sent.
    pub fn restart(&mut self, now: Time) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// Stores the delivery state in a segment that is sent.
    pub fn stamp(&self, segment: &mut Segment) {
        segment.first_sent_at = self.first_sent_at;
        segment.delivered_at = self.delivered_at;
        segment.delivered = self.delivered;
        segment.flags.clear(Flags::APP_LIMITED);
        if self.is_app_limited() {
            segment.flags.set(Flags::APP_LIMITED);
        }
    }

    /// Records a delivered segment. The most recently sent segment of an ACK determines the sample.
    pub fn on_delivered(&mut self, seq: u64, segment: &Segment, counts: SendCounts, delivery: &mut Delivery) {
        if let Some(newest) = &delivery.newest {
            if (segment.sent_at, seq) <= (self.first_sent_at, newest.seq) {
                return;
            }
        }
        self.first_sent_at = segment.sent_at;
        delivery.newest = Some(Newest {
            seq,
            prior_delivered: segment.delivered,
            prior_at: segment.delivered_at,
            counts,
            send_interval: segment.sent_at.since(segment.first_sent_at),
            is_app_limited: segment.flags.has(Flags::APP_LIMITED),
        });
    }

    /// Returns the sample after all segments of an ACK were recorded; `None` if the ACK delivered no segment for the
    /// first time. `newly_delivered` counts segments, including duplicates that a D-SACK reported.
    pub fn sample(
        &mut self,
        now: Time,
        newly_delivered: u64,
        delivery: &Delivery,
        totals: Totals,
        min_rtt: Option<Span>,
    ) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if newly_delivered > 0 {
            self.delivered_at = now;
        }
        let newest = delivery.newest.as_ref()?;
        let interval = newest.send_interval.max(now.since(newest.prior_at));
        // The interval is shorter than the path's minimum RTT: a spurious copy has made it meaningless.
        let is_sound = min_rtt.is_none_or(|min| interval >= min) && interval > Span::ZERO;
        let sample = RateSample {
            prior_delivered: Packets(newest.prior_delivered),
            delivered: Packets(self.delivered - newest.prior_delivered),
            lost: Packets(since(totals.lost, newest.counts.lost)),
            delivered_ce: Packets(since(totals.marked, newest.counts.delivered_ce)),
            inflight_at_send: Packets(u64::from(newest.counts.inflight)),
            interval: is_sound.then_some(interval),
            is_app_limited: newest.is_app_limited,
        };
        if is_sound && (!sample.is_app_limited || self.best.is_none_or(|best| is_at_least(&sample, &best))) {
            self.best = Some(sample);
        }
        Some(sample)
    }

    /// Returns the rate of `best`, in payload bits per second (Linux: `tcpi_delivery_rate`); `None` before the first
    /// sample with a valid interval.
    pub fn delivery_rate(&self, mss: Bytes) -> Option<Rate> {
        self.best.and_then(|best| best.rate(mss))
    }
}

/// Whether `left` is at least as fast as `right`; both have an interval.
fn is_at_least(left: &RateSample, right: &RateSample) -> bool {
    let (left_interval, right_interval) = (left.interval.unwrap_or_default(), right.interval.unwrap_or_default());
    u128::from(left.delivered.0) * u128::from(right_interval.0)
        >= u128::from(right.delivered.0) * u128::from(left_interval.0)
}
