//! Counts round trips (5.5.1).
//!
//! Rounds are counted in packets, not in time: a round ends when a packet is acknowledged that was sent after the
//! previous round had ended.

use super::sample::Sample;
use crate::Conn;
use thalweg_units::Packets;

#[derive(Debug, Default)]
pub(super) struct Round {
    /// Rounds so far.
    pub count: u64,
    /// Whether the latest ACK began a round.
    pub is_start: bool,
    /// Rounds since the last probe for bandwidth, plus a random initial offset; saturates at 255.
    pub since_probe: u64,
    /// The round ends with the acknowledgement of a packet that was sent when at least this number of packets had been
    /// delivered.
    end_delivered: Packets,
}

impl Round {
    /// Handles an ACK.
    pub fn update(&mut self, conn: &Conn, sample: &Sample) {
        self.is_start = sample.is_valid && sample.prior_delivered >= self.end_delivered;
        if self.is_start {
            self.restart(conn);
            self.count += 1;
            self.since_probe = (self.since_probe + 1).min(255);
        }
    }

    /// Makes the round end one round trip from now.
    pub fn restart(&mut self, conn: &Conn) {
        self.end_delivered = conn.delivered;
    }
}
