//! The bounds on the rate and the packets in flight after losses outside of a probe (5.5.10.3).
//!
//! Each round with a loss reduces both bounds by 30 %, but not below the rate and the amount delivered in that round.
//! A round with marks reduces only the bound on the packets in flight (`ecn`). The next probe removes the bounds.

use super::bounds::BETA;
use super::state::Bbr3;
use crate::Window;
use crate::fixed_point::{Bandwidth, Gain};
use thalweg_units::Packets;

impl Bbr3 {
    /// Updates the short-term bounds at the end of a round (AdaptLowerBoundsFromCongestion).
    pub(super) fn adapt_short_term(&mut self, window: &Window) {
        if self.is_probing() {
            return;
        }
        let mut bound_by_marks = None;
        if self.signals.is_mark_in_round {
            let inflight = self.short_term.inflight.unwrap_or(window.cwnd);
            self.short_term.inflight = Some(inflight);
            bound_by_marks = Some(self.after_marks(inflight));
        }
        if self.signals.is_loss_in_round {
            let bw = self.short_term.bw.unwrap_or(self.max_bw.max()).scale(Gain::from_raw(BETA as u32));
            let inflight = Packets((self.short_term.inflight.unwrap_or(window.cwnd).0 * BETA) >> 8);
            self.short_term.bw = Some(bw.max(self.signals.latest_bw).max(Bandwidth::SMALLEST));
            self.short_term.inflight = Some(inflight.max(self.signals.latest_inflight));
        }
        if let Some(bound) = bound_by_marks {
            self.short_term.inflight = self.short_term.inflight.map(|inflight| inflight.min(bound));
        }
    }
}
