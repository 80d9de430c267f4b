//! An ACK in the form that BBRv3 evaluates.

use crate::Ack;
use crate::fixed_point::Bandwidth;
use thalweg_units::{Packets, Span};

#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Bandwidth of the sample; zero if it is not valid.
    pub bw: Bandwidth,
    /// Whether the sample has an interval.
    pub is_valid: bool,
    /// Segments newly delivered, and newly deemed lost.
    pub acked: Packets,
    pub newly_lost: Packets,
    pub prior_inflight: Packets,
    pub rtt: Option<Span>,
    pub is_delayed: bool,
    pub is_probe_answer: bool,
    /// See [`RateSample`](crate::RateSample); zero without a rate sample.
    pub prior_delivered: Packets,
    pub delivered: Packets,
    pub lost: Packets,
    pub delivered_ce: Packets,
    pub inflight_at_send: Packets,
    pub is_app_limited: bool,
}

impl Sample {
    pub fn of(ack: &Ack) -> Sample {
        let rate = ack.rate.as_ref();
        let interval = rate.and_then(|rate| rate.interval).filter(|interval| interval.as_micros() > 0);
        let count = |take: fn(&crate::RateSample) -> Packets| rate.map_or(Packets::ZERO, take);
        let delivered = count(|rate| rate.delivered);
        Sample {
            bw: interval.map_or(Bandwidth::ZERO, |interval| Bandwidth::of_rounded_up(delivered, interval)),
            is_valid: interval.is_some(),
            acked: ack.acked,
            newly_lost: ack.lost,
            prior_inflight: ack.prior_inflight,
            rtt: ack.rtt,
            is_delayed: ack.is_delayed,
            is_probe_answer: ack.is_probe_answer,
            prior_delivered: count(|rate| rate.prior_delivered),
            delivered,
            lost: count(|rate| rate.lost),
            delivered_ce: count(|rate| rate.delivered_ce),
            inflight_at_send: count(|rate| rate.inflight_at_send),
            is_app_limited: rate.is_some_and(|rate| rate.is_app_limited),
        }
    }

    /// Whether the sample is valid and its ACK has delivered packets; other samples do not update the bandwidth.
    pub fn is_observation(&self) -> bool {
        self.is_valid && self.acked > Packets::ZERO
    }
}
