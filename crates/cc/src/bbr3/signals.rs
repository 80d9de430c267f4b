//! Delivered and lost packets of the latest round (5.5.10.3).
//!
//! A round here ends like those of `round`, but restarts with the first loss: the rate and the delivered packets are
//! measured over the complete round trip of the loss.

use super::sample::Sample;
use crate::Conn;
use crate::fixed_point::Bandwidth;
use thalweg_units::Packets;

/// Measurements of the latest round.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Highest bandwidth, and largest number of packets delivered per rate sample, in the round.
    pub latest_bw: Bandwidth,
    pub latest_inflight: Packets,
    /// Whether the latest ACK began a round.
    pub is_round_start: bool,
    pub is_loss_in_round: bool,
    pub is_mark_in_round: bool,
    /// Whether a loss or a mark occurred since phase Down began.
    pub is_loss_in_cycle: bool,
    pub is_mark_in_cycle: bool,
    /// The round ends with the acknowledgement of a packet that was sent when at least this number of packets had been
    /// delivered.
    pub end_delivered: Packets,
}

impl Signals {
    /// Handles the end of the handshake: the first round ends when a packet is acknowledged that was sent after the
    /// first delivery of data.
    pub fn begin(&mut self, conn: &Conn) {
        self.end_delivered = conn.delivered + Packets(1);
    }

    /// Adds the sample to the round, before the model is updated (UpdateLatestDeliverySignals).
    pub fn update_latest(&mut self, conn: &Conn, sample: &Sample) {
        self.is_round_start = false;
        if !sample.is_observation() {
            return;
        }
        self.latest_bw = self.latest_bw.max(sample.bw);
        self.latest_inflight = self.latest_inflight.max(sample.delivered);
        if sample.prior_delivered >= self.end_delivered {
            self.end_delivered = conn.delivered;
            self.is_round_start = true;
        }
    }

    /// Starts the next round with the sample, after cwnd is set (AdvanceLatestDeliverySignals). An ACK that answers a
    /// loss probe does not start one: if the probe has repaired a loss, the packets delivered before it are needed.
    pub fn advance_latest(&mut self, sample: &Sample) {
        if self.is_round_start && !sample.is_probe_answer {
            self.latest_bw = sample.bw;
            self.latest_inflight = sample.delivered;
        }
    }

    /// Clears the signals of the round and the cycle (ResetCongestionSignals).
    pub fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.is_mark_in_round = false;
        self.is_loss_in_cycle = false;
        self.is_mark_in_cycle = false;
        self.latest_bw = Bandwidth::ZERO;
        self.latest_inflight = Packets::ZERO;
    }
}
