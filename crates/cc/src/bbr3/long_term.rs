//! The long-term bound of packets in flight (5.3.3.9, 5.5.10.2).
//!
//! A probe that loses more than 2 % sets the bound to the number of packets in flight when the loss exceeded that
//! threshold, and to at least 70 % of the BDP or of cwnd, whichever is lower. Later probes raise it with a slope that
//! doubles each round. A larger number of packets in flight without excessive loss raises it in every phase.

use super::bounds::{BETA, LOSS_THRESHOLD};
use super::cycle::{AckPhase, Phase};
use super::sample::Sample;
use super::state::{Bbr3, MIN_CWND};
use crate::{Conn, LostSegment, Window};
use rand_core::Rng;
use thalweg_units::Packets;

/// Share of the bound that is left to other flows, in 256ths: 15 % (2.8, Headroom).
const HEADROOM: u64 = 256 * 15 / 100;

/// Maximum number of rounds in which the slope of the bound doubles.
const MAX_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    /// Updates the bound, and advances the window of the maximum bandwidth (AdaptLongTermModel). Returns whether Refill
    /// has begun.
    pub(super) fn adapt_long_term(&mut self, conn: &Conn, sample: &Sample, window: &Window, rng: &mut dyn Rng) -> bool {
        if self.round.is_start && self.end_ack_phase(conn, sample) {
            return true;
        }
        if self.is_sample_too_high(sample) {
            if self.cycle.is_probe_sample {
                self.respond_to_congestion(conn, sample.inflight_at_send, sample.is_app_limited, window, rng);
            }
            return false;
        }
        let Some(bound) = self.long_term else { return false };
        self.long_term = Some(bound.max(sample.inflight_at_send));
        if self.is_in_probe_bw() && self.cycle.phase == Phase::Up {
            self.raise_long_term(conn, sample, window);
        }
        false
    }

    /// Handles the end of a round of ACKs. Returns whether Refill has begun.
    fn end_ack_phase(&mut self, conn: &Conn, sample: &Sample) -> bool {
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping => {
                self.cycle.is_probe_sample = false;
                self.cycle.ack_phase = AckPhase::Init;
                if self.is_in_probe_bw() && !sample.is_app_limited {
                    self.max_bw.advance();
                }
                // The bound was reached without excessive loss: probe again, and exceed it (5.3.3.6).
                if self.is_in_probe_bw() && self.cycle.was_cautious && !self.cycle.was_too_high {
                    self.start_refill(conn, 0);
                    return true;
                }
            }
            AckPhase::Init | AckPhase::Refilling | AckPhase::ProbeFeedback => {}
        }
        false
    }

    /// Checks whether the loss rate of a segment that was deemed lost is too high (HandleLostPacket).
    pub(super) fn judge_lost_segment(
        &mut self,
        conn: &Conn,
        segment: &LostSegment,
        window: &Window,
        rng: &mut dyn Rng,
    ) {
        let is_too_high = Bbr3::is_loss_too_high(segment.lost, segment.inflight_at_send);
        if self.cycle.is_probe_sample && is_too_high {
            let inflight = inflight_at_threshold(segment);
            self.respond_to_congestion(conn, inflight, segment.is_app_limited, window, rng);
        }
    }

    /// Handles a loss that a loss probe has repaired: one lost segment, in addition to those delivered in the latest
    /// round.
    pub(super) fn judge_probe_repair(&mut self, conn: &Conn, is_app_limited: bool, window: &Window, rng: &mut dyn Rng) {
        let inflight = self.signals.latest_inflight + Packets(1);
        if self.cycle.is_probe_sample && Bbr3::is_loss_too_high(Packets(1), inflight) {
            self.respond_to_congestion(conn, inflight, is_app_limited, window, rng);
        }
    }

    /// Responds to excessive congestion in a probe with `inflight` packets in flight, at most once per probe
    /// (HandleInflightTooHigh).
    fn respond_to_congestion(
        &mut self,
        conn: &Conn,
        inflight: Packets,
        is_app_limited: bool,
        window: &Window,
        rng: &mut dyn Rng,
    ) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        // An application-limited sample does not test the bound.
        if !is_app_limited {
            let floor = Packets((self.response_target(conn, window).0 * BETA) >> 8);
            self.long_term = Some(inflight.max(floor));
        }
        if self.is_in_probe_bw() && self.cycle.phase == Phase::Up {
            self.recovery.undo.was_up = true;
            self.start_down(conn, rng);
        }
    }

    /// Raises the bound if it limits cwnd and cwnd limits the sender (ProbeInflightLongtermUpward).
    fn raise_long_term(&mut self, conn: &Conn, sample: &Sample, window: &Window) {
        let Some(bound) = self.long_term else { return };
        if !conn.is_cwnd_exhausted || window.cwnd < bound {
            return;
        }
        self.cycle.up_acked += sample.acked;
        if let Some(step) = self.cycle.acked_per_increment.filter(|step| self.cycle.up_acked >= *step) {
            let increments = self.cycle.up_acked.0 / step.0;
            self.cycle.up_acked = Packets(self.cycle.up_acked.0 % step.0);
            self.long_term = Some(bound + Packets(increments));
            self.is_at_target = false;
        }
        if self.round.is_start {
            self.raise_long_term_slope(window);
        }
    }

    /// Doubles the slope of the bound (RaiseInflightLongtermSlope).
    pub(super) fn raise_long_term_slope(&mut self, window: &Window) {
        let growth = 1u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.acked_per_increment = Some(Packets((window.cwnd.0 / growth).max(1)));
    }

    /// Returns the bound less the headroom for other flows (InflightWithHeadroom); `None` without a bound.
    pub(super) fn long_term_with_headroom(&self) -> Option<Packets> {
        let bound = self.long_term?;
        let headroom = Packets(((bound.0 * HEADROOM) >> 8).max(1));
        Some(bound.saturating_sub(headroom).max(MIN_CWND))
    }
}

/// Returns the packets in flight when the losses reached the threshold (InflightAtLoss). Solves `(lost before + part) /
/// (inflight before + part) = threshold` for `part`, the leading part of the segment whose loss reaches the threshold.
fn inflight_at_threshold(segment: &LostSegment) -> Packets {
    let inflight_before = segment.inflight_at_send.0 - 1;
    let lost_before = segment.lost.0.saturating_sub(1);
    let budget = (inflight_before * LOSS_THRESHOLD).div_ceil(256);
    let part = (budget.saturating_sub(lost_before) << 8) / (256 - LOSS_THRESHOLD);
    Packets(inflight_before + part)
}
