//! The response to ECN marks with a shallow threshold.
//!
//! Linux responds to marks on routes that are configured to mark at a shallow threshold, for connections with a minimum
//! round-trip time of up to 5 ms. Each round with marks outside of a probe reduces the bound of the packets in flight
//! by a third of the smoothed fraction of marked packets. If at least half of the packets are marked in two consecutive
//! rounds, Startup ends; if more than half are, a probe ends. The draft does not cover ECN (3.7).

use super::sample::Sample;
use super::state::Bbr3;
use crate::{Conn, Window};
use thalweg_units::{Packets, Span};

/// BBR responds to marks only if the minimum round-trip time is at most this.
const MAX_RTT: Span = Span::from_millis(5);

/// Factors in 256ths: the weight of the newest fraction, the part of the fraction by which the packets in flight are
/// reduced, the fraction above which marks are too many, and the part of the long-term bound that sets the initial
/// growth of a probe after the marks have ceased.
const UNIT: u64 = 256;
const WEIGHT: u64 = UNIT / 16;
const CUT: u64 = UNIT / 3;
const THRESHOLD: u64 = UNIT / 2;
const REPROBE: u64 = UNIT / 2;

/// Number of rounds with too many marks after which Startup ends.
const STARTUP_ROUNDS: u32 = 2;

impl Bbr3 {
    /// Updates the fraction of marked packets at the start of a round. Ends Startup after consecutive rounds with too
    /// many marks.
    pub(super) fn update_mark_fraction(&mut self, conn: &Conn, window: &Window) {
        if !self.ecn.is_low {
            return;
        }
        self.ecn.is_eligible |= self.min_rtt.rtt.is_some_and(|rtt| rtt <= MAX_RTT);
        let delivered = conn.delivered.saturating_sub(self.ecn.delivered).0;
        if !self.ecn.is_eligible || delivered == 0 {
            return;
        }
        let newest = conn.delivered_ce.saturating_sub(self.ecn.marked).0 * UNIT / delivered;
        let smoothed = (((UNIT - WEIGHT) * self.ecn.fraction) >> 8) + ((WEIGHT * newest) >> 8);
        self.ecn.fraction = smoothed.min(UNIT);
        (self.ecn.delivered, self.ecn.marked) = (conn.delivered, conn.delivered_ce);
        if self.full_pipe.is_reached {
            return;
        }
        self.ecn.startup_rounds = if newest >= THRESHOLD { self.ecn.startup_rounds + 1 } else { 0 };
        if self.ecn.startup_rounds >= STARTUP_ROUNDS {
            self.end_startup_by_congestion(conn, window);
        }
    }

    /// Whether the sample has too many marks.
    pub(super) fn are_marks_too_many(&self, sample: &Sample) -> bool {
        self.ecn.is_eligible && sample.delivered_ce.0 > (sample.delivered.0 * THRESHOLD) >> 8
    }

    /// Returns the bound of the packets in flight after a round with marks.
    pub(super) fn after_marks(&self, inflight: Packets) -> Packets {
        Packets((inflight.0 * (UNIT - ((self.ecn.fraction * CUT) >> 8))) >> 8)
    }

    /// Returns the number of growth rounds that a probe skips when it starts after the marks have ceased.
    pub(super) fn reprobe_rounds(&self) -> u32 {
        let growth = (self.long_term.map_or(u64::from(u32::MAX), |bound| bound.0) * REPROBE) >> 8;
        growth.max(1).ilog2().min(30)
    }
}
