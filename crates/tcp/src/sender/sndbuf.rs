//! The send buffer, and the application's writes to it.
//!
//! The buffer starts with space for [`sndbuf_factor`](thalweg_cc::Controller::sndbuf_factor) times ten segments
//! ([`KernelGeneration::sndbuf_per_segment`](crate::KernelGeneration)), and grows to the same multiple of cwnd, up to
//! its limit (`tcp_wmem`). An application that waits for space is woken by an ACK after which a third of the buffer is
//! free.
//!
//! The stream is queued in pieces (Linux: skbs) of up to 64 KiB or half of the largest window that the receiver has
//! offered, whichever is less, in whole segments. A piece and each outstanding burst take memory for their payload and
//! the overhead of [`KernelGeneration::piece_overhead`](crate::KernelGeneration).
//!
//! The application sends while it writes, as `tcp_sendmsg` does:
//!
//! ```text
//!   next piece ──► is memory free? ──no──► send all that is allowed; wait
//!       ▲                 │ yes
//!       │                 ▼
//!       │    fill the last piece ◄────────────────────────────────┐
//!       │                 │                                       │
//!       └─ nothing left ── send a burst of it ── data is left ─────┘
//! ```
//!
//! Memory is checked before a piece begins, and not while it is filled. After a burst of a piece was sent, the rest of
//! the piece is filled again, so one write can queue, and have in flight, much more than the limit. Linux behaves in
//! the same way, so a small `sndbuf_max` limits a connection less than its value suggests.
//!
//! The simulated application writes without blocking. If the buffer has reached `sndbuf_max`, a write takes time for
//! the packets sent during it, except on 6.1.
//!
//! Not modelled: Linux merges pieces that were selectively acknowledged, and splits those that are retransmitted in
//! parts.

use super::Sender;
use super::pacer::BURST_MAX;
use super::send_buffer::Piece;
use super::work::Push;
use rand_core::Rng;
use thalweg_units::{Bytes, Packets, Time};

/// Minimum number of segments for which the buffer is sized.
const MIN_SEGMENTS: u64 = 10;
/// Minimum size of the buffer in bytes: SOCK_MIN_SNDBUF.
const SIZE_MIN: u64 = 4608;

/// Maximum size of one write of the application in bytes.
const WRITE_MAX: u64 = 256 << 10;

impl Sender {
    /// Makes the buffer large enough for cwnd.
    pub(super) fn expand_sndbuf(&mut self) {
        let Packets(cwnd) = self.window.cwnd;
        let segments = cwnd.max(MIN_SEGMENTS).max(self.rack.reordering + 1);
        let size =
            segments.saturating_mul(self.config.kernel.sndbuf_per_segment()).saturating_mul(self.cc.sndbuf_factor());
        self.sndbuf.size = self.sndbuf.size.max(size.min(self.config.sndbuf_max.0.max(SIZE_MIN)));
    }

    fn sndbuf_memory(&self) -> u64 {
        let Bytes(una) = self.board.una_bytes();
        self.sndbuf.queued - una
            + (self.board.bursts_out() + self.sndbuf.pieces.len() as u64) * self.config.kernel.piece_overhead()
    }

    /// Wakes the application after an ACK, if it waits for memory and a third of the buffer is free.
    pub(super) fn check_space(&mut self, now: Time) {
        if !self.sndbuf.is_blocked() {
            return;
        }
        if self.board.in_flight() < self.window.cwnd {
            self.expand_sndbuf();
            self.usage.cwnd_stamp = now;
        }
        let memory = self.sndbuf_memory();
        if memory < self.sndbuf.size && self.sndbuf.size - memory >= memory / 2 {
            self.sndbuf.begin_writing();
        }
    }

    /// Suspends or resumes the application's writes.
    pub fn hold_application(&mut self, is_held: bool) {
        self.sndbuf.is_held = is_held;
    }

    /// Whether the application is writing, and its previous write is complete.
    pub fn application_can_write(&self) -> bool {
        self.sndbuf.is_writing && self.sndbuf.busy_until().is_none()
    }

    /// Continues the application's writes until data is to be sent. Returns which data that is.
    pub(super) fn write_on(&mut self, now: Time, rng: &mut dyn Rng) -> Push {
        if !self.sndbuf.is_writing || self.sndbuf.is_held {
            return Push::Nothing;
        }
        let mss = self.config.mss.0;
        let goal = (BURST_MAX.min(self.window_max.0 / 2) / mss).max(1) * mss;
        while self.sndbuf.is_writing {
            if self.sndbuf.write_left == 0 {
                if !self.begin_write(now, rng) {
                    return Push::Nothing;
                }
                continue;
            }
            if self.sndbuf.is_last_full(goal) {
                if self.sndbuf_memory() >= self.sndbuf.size {
                    return self.stop_writing();
                }
                self.restart_after_idle(now);
                let start = self.sndbuf.queued;
                self.sndbuf.pieces.push_back(Piece { start, end: start, is_pushed: false });
            }
            self.sndbuf.fill_last(goal);
            let is_much = self.sndbuf.queued > self.sndbuf.pushed + self.window_max.0 / 2;
            if self.sndbuf.write_left == 0 {
                let is_last_write = self.sndbuf.queued == self.sndbuf.written;
                if is_last_write || is_much {
                    self.sndbuf.push_last();
                }
                return if is_last_write { Push::All } else { Push::WholeSegments };
            }
            if is_much {
                self.sndbuf.push_last();
                return Push::All;
            }
            if self.sndbuf.pieces.len() == 1 {
                return Push::OneBurst;
            }
        }
        Push::Nothing
    }

    /// Stops writing, because no memory is free.
    fn stop_writing(&mut self) -> Push {
        self.sndbuf.is_writing = false;
        self.sndbuf.write_left = 0;
        self.sndbuf.write_sent = 0;
        if !self.sndbuf.has_queued {
            return Push::Nothing;
        }
        self.sndbuf.push_last();
        Push::All
    }

    /// Starts the application's next write. Returns whether it did.
    fn begin_write(&mut self, now: Time, rng: &mut dyn Rng) -> bool {
        let sndbuf = &mut self.sndbuf;
        let unqueued = sndbuf.written - sndbuf.queued;
        let busy_until = sndbuf.busy_until.take();
        let sent = std::mem::take(&mut sndbuf.write_sent);
        if unqueued == 0 {
            sndbuf.is_writing = false;
            return false;
        }
        // Below the limit, the duration of a write is neglected.
        let takes_time = sndbuf.size >= self.config.sndbuf_max.0;
        let sent = if takes_time { sent } else { 0 };
        let free = busy_until.unwrap_or_else(|| now + self.config.kernel.write_time(sent, rng));
        if free > now {
            sndbuf.busy_until = Some(free);
            return false;
        }
        sndbuf.write_left = unqueued.min(WRITE_MAX);
        sndbuf.has_queued = false;
        self.check_app_limited();
        true
    }

    /// Marks the next rate samples if only the application prevents the pipe from being full.
    pub(super) fn check_app_limited(&mut self) {
        let Bytes(next) = self.board.next_bytes();
        let has_nothing_to_send = self.sndbuf.queued - next < self.config.mss.0;
        let in_flight = self.board.in_flight();
        let is_everything_resent = self.board.lost_out() <= self.board.retrans_out();
        if has_nothing_to_send && in_flight < self.window.cwnd && is_everything_resent {
            self.rate.set_app_limited(in_flight);
        }
    }
}
