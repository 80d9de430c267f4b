//! Bounds the packets in flight after losses.
//!
//! A round trip that loses more than the share `loss_threshold` of its packets bounds cwnd to `loss_beta` times the
//! maximum number of packets that were in flight, or times the previous bound if that is less. A probe raises the
//! bound; other phases leave headroom below it. The round trip after a reduction does not count: its lost packets were
//! sent before.

use super::settings::{LossResponse, MIN_CWND, THRESHOLD_SHIFT};
use crate::{Ack, Conn};
use thalweg_units::Packets;

/// The bound is in units of 1 / 2^BOUND_SHIFT packets.
const BOUND_SHIFT: u32 = 8;

/// Increase of the bound per packet that is acknowledged in a probe: a quarter.
const GROWTH: u64 = (1 << BOUND_SHIFT) / 4;

/// Maximum of the bound, in packets.
const MAX_BOUND: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct LossBound {
    response: LossResponse,
    /// The bound in units of 2^-8 packets; `None` before a round trip's losses first exceed the threshold.
    bound: Option<u64>,
    /// Maximum number of packets in flight during the round.
    peak: Packets,
    start_lost: Packets,
    start_delivered: Packets,
    /// Whether the round still includes losses of packets sent before the reduction.
    is_settling: bool,
}

impl LossBound {
    /// Starts without a bound.
    pub fn new(response: LossResponse) -> LossBound {
        let none = Packets::ZERO;
        LossBound { response, bound: None, peak: none, start_lost: none, start_delivered: none, is_settling: false }
    }

    /// Handles an ACK. `is_probing` is set in a probing phase.
    pub fn update(&mut self, conn: &Conn, ack: &Ack, is_round_start: bool, is_probing: bool) {
        self.peak = self.peak.max(ack.prior_inflight);
        if let Some(bound) = self.bound.as_mut().filter(|_| is_probing) {
            *bound = (*bound + ack.acked.0 * GROWTH).min(MAX_BOUND << BOUND_SHIFT);
        }
        if is_round_start {
            self.end_round(conn);
        }
    }

    fn end_round(&mut self, conn: &Conn) {
        let lost = conn.lost.saturating_sub(self.start_lost).0;
        let delivered = conn.delivered.saturating_sub(self.start_delivered).0;
        let is_excessive = lost << THRESHOLD_SHIFT > self.response.threshold * (lost + delivered);
        let is_reduced = is_excessive && !self.is_settling;
        if is_reduced {
            let peak = self.peak.0 << BOUND_SHIFT;
            let from = self.bound.map_or(peak, |bound| bound.min(peak));
            self.bound = Some(((from * self.response.beta.raw()) >> 8).max(MIN_CWND.0 << BOUND_SHIFT));
        }
        self.is_settling = is_reduced;
        self.peak = Packets::ZERO;
        self.start_lost = conn.lost;
        self.start_delivered = conn.delivered;
    }

    /// Returns the upper bound of cwnd. `is_probing` is set in a probing phase.
    pub fn max_cwnd(&self, is_probing: bool) -> Packets {
        let Some(bound) = self.bound else { return Packets::MAX };
        let share = if is_probing { 256 } else { 256 - self.response.headroom.raw() };
        Packets((bound * share) >> 8 >> BOUND_SHIFT).max(MIN_CWND)
    }

    /// Returns the bound in packets, if there is one.
    pub fn packets(&self) -> Option<Packets> {
        self.bound.map(|bound| Packets(bound >> BOUND_SHIFT))
    }
}
