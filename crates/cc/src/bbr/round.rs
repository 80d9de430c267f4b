//! Counts round trips.
//!
//! Rounds are counted in packets, not in time: a round ends when a packet is acknowledged that was sent after the
//! previous round had ended.

use crate::{Conn, RateSample};
use thalweg_units::Packets;

#[derive(Debug, Default)]
pub(super) struct Round {
    /// Rounds so far.
    pub count: u64,
    /// Whether the latest ACK or timeout began a round.
    pub is_start: bool,
    /// The round ends with the acknowledgement of a packet that was sent when at least this number of packets had been
    /// delivered.
    end_delivered: Packets,
}

impl Round {
    /// Handles an ACK with a valid sample of the delivery rate.
    pub fn update(&mut self, conn: &Conn, sample: &RateSample) {
        self.is_start = sample.prior_delivered >= self.end_delivered;
        if self.is_start {
            self.end_delivered = conn.delivered;
            self.count += 1;
        }
    }

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("next_rtt_delivered", self.end_delivered.0);
        take("round_start", u64::from(self.is_start));
    }

    /// Makes the round end one round trip from now.
    pub fn restart(&mut self, conn: &Conn) {
        self.end_delivered = conn.delivered;
    }
}
