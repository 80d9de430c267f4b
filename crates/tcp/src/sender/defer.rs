//! Waiting for a longer burst (TSO deferral): if the window allows only a short burst now and the next ACK is likely to
//! arrive within a millisecond, Linux waits for it, so that segments are sent in larger groups.
//!
//! Kernels before autumn 2025 (6.18, and the stable series of that time) waited if the first segment had been in flight
//! for half a round trip, regardless of the time until its ACK.

use super::Sender;
use thalweg_cc::CaState;
use thalweg_units::{Bytes, Span, Time};

/// A burst of at least 1/N of the window is not deferred: net.ipv4.tcp_tso_win_divisor.
const WINDOW_DIVISOR: u64 = 3;
/// A burst is deferred only if `Pacer::departure` is at most this long ago, and the next ACK is expected within this
/// time.
const RECENT: Span = Span::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    Now,
    /// Wait: cwnd allows only a short burst.
    ForCwnd,
    /// Wait for another reason.
    Wait,
}

impl Sender {
    /// Decides whether to defer a burst of at most `burst_size` segments, from a piece of which `piece` bytes are left.
    pub(super) fn deferral(&self, now: Time, burst_size: u64, piece: u64, is_last_piece: bool) -> Deferral {
        let mss = self.config.mss.0;
        let is_recovering = matches!(self.state, CaState::Recovery | CaState::Loss);
        if piece <= mss || is_recovering || now.since(self.pacer.departure) > RECENT {
            return Deferral::Now;
        }
        let Bytes(next) = self.board.next_bytes();
        let from_window = self.window_end.0.saturating_sub(next);
        let from_cwnd = self.window.cwnd.0.saturating_sub(self.board.in_flight().0).saturating_mul(mss);
        let limit = from_window.min(from_cwnd);
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
        // The ACK of the first segment is not expected soon.
        let srtt = self.rtt.srtt().unwrap_or_default();
        let until_ack = (head.sent_at + srtt).since(now);
        if until_ack > Span(srtt.0 / 2).min(RECENT) {
            return Deferral::Now;
        }
        if from_cwnd < from_window && from_cwnd <= piece { Deferral::ForCwnd } else { Deferral::Wait }
    }
}
