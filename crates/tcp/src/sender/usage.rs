//! Congestion window validation: the reduction of an unused cwnd (similar to RFC 7661; RFC 5681 section 4.1).
//!
//! A window that the application does not fill contains no information about the path. After a pause, cwnd is halved
//! for every retransmission timeout that has passed. If the segments sent do not fill cwnd for a timeout, cwnd is
//! reduced half-way to the used part. Controllers that govern recovery handle this themselves.

use super::{INITIAL_CWND, Sender};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

impl Sender {
    /// Whether cwnd limits the sender; in slow start, also whether more than half of it was used.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.usage.is_cwnd_limited
            || (self.window.is_in_slow_start() && self.window.cwnd.0 < 2 * self.usage.max_packets_out)
    }

    /// Updates the use of cwnd after a transmission. `is_limited`: cwnd stopped the sender.
    pub(super) fn validate_cwnd(&mut self, now: Time, is_limited: bool) {
        let out = self.board.packets_out();
        let usage = &mut self.usage;
        if self.board.una() >= usage.window_end || is_limited || (!usage.is_cwnd_limited && out > usage.max_packets_out)
        {
            usage.is_cwnd_limited = is_limited;
            usage.max_packets_out = out;
            usage.window_end = self.board.next();
        }
        if self.is_cwnd_limited() {
            self.usage.cwnd_used = 0;
            self.usage.cwnd_stamp = now;
            return;
        }
        self.usage.cwnd_used = self.usage.cwnd_used.max(out);
        if !self.is_governed && now.since(self.usage.cwnd_stamp) >= self.rtt.rto() {
            self.shrink_unused(now);
        }
    }

    fn shrink_unused(&mut self, now: Time) {
        if self.state == CaState::Open && !self.sndbuf.is_blocked() {
            let used = Packets(self.usage.cwnd_used).max(INITIAL_CWND);
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = Packets(u64::midpoint(self.window.cwnd.0, used.0));
            }
            self.usage.cwnd_used = 0;
        }
        self.usage.cwnd_stamp = now;
    }

    /// Restarts after a pause, before data is sent: cwnd is halved for every retransmission timeout in the pause, down
    /// to the initial window.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        if self.is_governed || self.board.packets_out() > 0 {
            return;
        }
        let rto = self.rtt.rto();
        let mut pause = now.since(self.usage.last_sent_at);
        if pause <= rto {
            return;
        }
        self.window.ssthresh = self.current_ssthresh();
        let floor = self.window.cwnd.min(INITIAL_CWND);
        let mut cwnd = self.window.cwnd;
        loop {
            pause = pause.saturating_sub(rto);
            if pause == Span::ZERO || cwnd <= floor {
                break;
            }
            cwnd = Packets(cwnd.0 / 2);
        }
        self.window.cwnd = cwnd.max(floor);
        self.usage.cwnd_stamp = now;
        self.usage.cwnd_used = 0;
    }
}
