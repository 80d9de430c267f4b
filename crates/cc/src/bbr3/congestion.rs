//! Responses to losses and ECN marks (5.5.10).

use super::bounds::LOSS_THRESHOLD;
use super::sample::Sample;
use super::state::{Bbr3, Mode};
use crate::{Conn, Window};
use thalweg_units::Packets;

impl Bbr3 {
    /// Updates bandwidth and losses; at the end of a round, adapts the model (UpdateCongestionSignals).
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample, window: &Window) {
        if !sample.is_observation() {
            return;
        }
        // An application-limited sample may be lower than the bandwidth, but not higher (5.5.4).
        if !sample.is_app_limited || sample.bw >= self.max_bw.max() {
            self.max_bw.update(sample.bw);
        }
        self.signals.is_loss_in_round |= sample.newly_lost > Packets::ZERO;
        if self.signals.is_round_start {
            self.adapt_short_term(window);
            self.signals.is_loss_in_round = false;
            self.signals.is_mark_in_round = false;
        }
    }

    /// Records a loss (5.5.10.2, NoteLoss).
    pub(super) fn note_loss(&mut self, conn: &Conn, window: &Window) {
        if !self.signals.is_loss_in_round {
            self.signals.end_delivered = conn.delivered;
            if self.variant.undoes_state {
                self.save_for_undo(window);
            }
        }
        self.signals.is_loss_in_round = true;
        self.signals.is_loss_in_cycle = true;
    }

    /// Whether the loss ratio is too high (5.5.10.2, IsInflightTooHigh): above 2 % of the packets in flight at the
    /// transmission.
    pub(super) fn is_loss_too_high(lost: Packets, inflight_at_send: Packets) -> bool {
        lost.0 > 0 && inflight_at_send.0 > 0 && lost.0 > (inflight_at_send.0 * LOSS_THRESHOLD) >> 8
    }

    /// Whether the sample shows too many packets in flight.
    pub(super) fn is_sample_too_high(&self, sample: &Sample) -> bool {
        Bbr3::is_loss_too_high(sample.lost, sample.inflight_at_send) || self.are_marks_too_many(sample)
    }

    pub(super) fn is_in_probe_bw(&self) -> bool {
        self.mode == Mode::ProbeBw
    }
}
