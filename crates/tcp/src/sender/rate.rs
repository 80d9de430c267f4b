//! The delivery-rate sampler (draft-cheng-iccrg-delivery-rate-estimation): the rate at which the data in flight was
//! delivered.
//!
//! Every segment stores the state of the deliveries at its departure. When it is delivered, the difference to the
//! current state gives a rate over about one round trip. The interval is the longer one of sending and acknowledging,
//! so that neither a burst of segments nor a burst of ACKs looks like a faster path. Segments sent while the
//! application did not fill the pipe are marked, since their rate is the application's.

use super::scoreboard::{Flags, Segment, SendCounts, since};
use thalweg_cc::RateSample;
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

/// State of the connection's deliveries.
#[derive(Debug, Default)]
pub(super) struct RateSampler {
    /// Segments delivered so far. The SYN counts, as in Linux, and so do copies that arrived in vain (by D-SACK).
    pub delivered: u64,
    /// Time at which the latest was acknowledged.
    pub delivered_at: Time,
    /// Send time of the most recently sent segment that was delivered.
    first_sent_at: Time,
    /// Samples count as limited by the application until this many are delivered.
    app_limited_until: Option<u64>,
    /// The latest sample that was not limited by the application, or a higher one that was.
    best: Option<RateSample>,
}

/// Deliveries of one ACK, as far as they are known yet.
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

/// Counts since the connection began, in addition to deliveries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// Segments deemed lost.
    pub lost: u64,
    /// Segments whose acknowledgement reported a mark.
    pub marked: u64,
}

impl Delivery {
    /// The segment `seq` was acknowledged without the `rest` of its burst: what was in flight when the whole burst had
    /// left counts, as in Linux.
    pub fn count_burst(&mut self, seq: u64, rest: u64) {
        if let Some(newest) = self.newest.as_mut().filter(|newest| newest.seq == seq) {
            newest.counts.inflight = newest.counts.inflight.saturating_add(rest as u32);
        }
    }

    /// Returns the count of deliveries at the departure of the most recently sent of the segments.
    pub fn prior_delivered(&self) -> Option<u64> {
        self.newest.as_ref().map(|newest| newest.prior_delivered)
    }
}

impl RateSampler {
    /// Whether samples of segments that leave now count as limited by the application.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// The application, or the controller on purpose, does not fill the pipe.
    pub fn set_app_limited(&mut self, in_flight: Packets) {
        self.app_limited_until = Some((self.delivered + in_flight.0).max(1));
    }

    /// Nothing is in flight, and a segment is about to leave: the intervals restart here.
    pub fn restart(&mut self, now: Time) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// The segment leaves: stores the state in it.
    pub fn stamp(&self, segment: &mut Segment) {
        segment.first_sent_at = self.first_sent_at;
        segment.delivered_at = self.delivered_at;
        segment.delivered = self.delivered;
        segment.flags.clear(Flags::APP_LIMITED);
        if self.is_app_limited() {
            segment.flags.set(Flags::APP_LIMITED);
        }
    }

    /// The segment was delivered. The most recently sent one of an ACK makes the sample.
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

    /// All of an ACK is accounted for: the sample, if the ACK delivered anything. `newly_delivered` counts segments.
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
        // Shorter than the path: a copy that was sent in vain makes the interval meaningless.
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

    /// The latest usable delivery rate, in payload bits per second.
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
