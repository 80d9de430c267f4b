//! Waiting for a longer burst (TSO deferral): if the window allows only a short burst now and the next ACK is likely to
//! come soon, Linux waits for it, so that segments leave in larger groups.

use super::Sender;
use thalweg_cc::CaState;
use thalweg_units::{Bytes, Span, Time};

/// A burst that fills this part of the window does not wait: net.ipv4.tcp_tso_win_divisor.
const WINDOW_DIVISOR: u64 = 3;
/// After a longer pause nothing waits.
const RECENT: Span = Span::from_millis(1);

/// Whether to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    /// Send.
    Now,
    /// Wait, because cwnd allows only a short burst.
    ForCwnd,
    /// Wait, for another reason.
    Wait,
}

impl Sender {
    /// Whether to wait with a burst of at most `burst_size` segments, of which `unsent` bytes are in the buffer.
    pub(super) fn deferral(&self, now: Time, burst_size: u64, unsent: u64) -> Deferral {
        let mss = self.config.mss.0;
        let is_recovering = matches!(self.state, CaState::Recovery | CaState::Loss);
        if unsent <= mss || is_recovering || now.since(self.pacer.departure) > RECENT {
            return Deferral::Now;
        }
        let Bytes(next) = self.board.next_bytes();
        let from_window = self.window_end.0.saturating_sub(next);
        let from_cwnd = self.window.cwnd.0.saturating_sub(self.board.in_flight().0).saturating_mul(mss);
        let limit = from_window.min(from_cwnd);
        // The piece at the head of the send buffer.
        let largest = super::pacing::BURST_MAX / mss * mss;
        let piece = unsent.min(largest);
        let is_last_piece = unsent <= largest;
        if limit >= burst_size * mss || (!is_last_piece && limit >= piece) {
            return Deferral::Now;
        }
        let advertised = self.window_end.0.saturating_sub(self.board.una_bytes().0);
        if limit >= advertised.min(self.window.cwnd.0.saturating_mul(mss)) / WINDOW_DIVISOR {
            return Deferral::Now;
        }
        let Some(head) = self.board.head() else {
            return Deferral::Now;
        };
        // The ACK of the first segment is far away: it was sent less than half a round trip ago.
        if now.since(head.sent_at).0 < self.rtt.srtt().map_or(0, |srtt| srtt.0 / 2) {
            return Deferral::Now;
        }
        if from_cwnd < from_window && from_cwnd <= piece { Deferral::ForCwnd } else { Deferral::Wait }
    }
}
