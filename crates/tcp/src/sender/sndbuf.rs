//! The send buffer: how much of the stream the application has handed over, and in which pieces.
//!
//! What the application has written waits until the buffer has room. The buffer starts at 85 KiB and grows to what holds
//! a multiple of cwnd ([`sndbuf_factor`](thalweg_cc::Controller::sndbuf_factor)), up to its limit (`tcp_wmem`). Full, it
//! is refilled once it is two thirds full: the application is woken then, and writes at once.
//!
//! The stream is handed over in pieces (Linux: skbs) of up to 64 KiB or half of the receiver's largest window so far, in whole
//! segments. Room is asked for before a piece begins and not again until it is full, so that even the smallest buffer holds
//! one. A burst does not reach beyond its piece. In memory, a piece and each burst that is under way takes its payload
//! and [`BOOKKEEPING`].
//!
//! A transfer is one blocking write, however long it waits for room. Whether the application limits the rate is decided
//! when a write begins, and not when its writer wakes: a flow that the buffer limits is not limited by its application.
//!
//! Left out: Linux merges the pieces of what was selectively acknowledged, and splits those that are retransmitted in parts.

use super::Sender;
use super::pacing::BURST_MAX;
use std::collections::VecDeque;
use thalweg_units::{Bytes, Packets, Time};

/// Memory that a segment may take: 1460 bytes with headers and bookkeeping, rounded up to 4096, and a descriptor.
const SEGMENT_MEMORY: u64 = 4352;
/// Fewest segments that the buffer is made for.
const MIN_SEGMENTS: u64 = 10;
/// The smallest buffer: SOCK_MIN_SNDBUF.
const SIZE_MIN: u64 = 4608;
/// Memory of a piece besides its payload: 704 bytes for headers, 320 and 256 for descriptors.
const BOOKKEEPING: u64 = 1280;

/// The application's side of the stream.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// End of what the application wants to send.
    pub written: u64,
    /// End of what lies in the buffer or was sent.
    pub queued: u64,
    /// Bytes of memory that the buffer may take.
    size: u64,
    /// What was not sent yet, or only in part.
    pieces: VecDeque<Piece>,
    /// The end of the last piece that was pushed.
    pushed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    /// Whether its last segment carries the PSH flag.
    is_pushed: bool,
}

impl SendBuffer {
    /// Whether the application waits for room.
    pub fn is_blocked(&self) -> bool {
        self.queued < self.written
    }

    /// End of the piece that is sent next, and whether it is the last one; none: there is nothing to send.
    pub fn head(&self) -> Option<(u64, bool)> {
        self.pieces.front().map(|piece| (piece.end, self.pieces.len() == 1))
    }

    /// The stream was sent up to `end`. Whether that is the end of a piece that is pushed.
    pub fn on_sent(&mut self, end: u64) -> bool {
        let Some(piece) = self.pieces.front().copied().filter(|piece| piece.end == end) else {
            return false;
        };
        self.pieces.pop_front();
        piece.is_pushed
    }

    /// What was not sent is taken back: the stream ends at `next`.
    pub fn cut(&mut self, next: u64) {
        (self.written, self.queued) = (next, next);
        self.pieces.clear();
    }

    /// What the application waits to write moves into the last piece, up to `next + goal`, and into new ones of `goal`
    /// bytes, while there is room. `next` was sent; `window` is the largest window so far.
    fn fill(&mut self, next: u64, goal: u64, window: u64, is_room: impl Fn(&SendBuffer) -> bool) {
        if let Some(start) = self.pieces.len().checked_sub(1) {
            let start = start.checked_sub(1).map_or(next, |before| self.pieces[before].end.max(next));
            let last = self.pieces.back_mut().expect("there is a piece");
            self.queued = self.written.min(last.end.max(start + goal));
            last.end = self.queued;
            last.is_pushed = false;
        }
        while self.is_blocked() && is_room(self) {
            self.queued = self.written.min(self.queued + goal);
            let is_pushed = self.queued > self.pushed + window / 2;
            if is_pushed {
                self.pushed = self.queued;
            }
            self.pieces.push_back(Piece { end: self.queued, is_pushed });
        }
        if let Some(last) = self.pieces.back_mut() {
            last.is_pushed = true;
            self.pushed = last.end;
        }
    }
}

impl Sender {
    /// Makes the buffer large enough for cwnd.
    pub(super) fn expand_sndbuf(&mut self) {
        let Packets(cwnd) = self.window.cwnd;
        let segments = cwnd.max(MIN_SEGMENTS).max(self.rack.reordering + 1);
        let size = segments.saturating_mul(SEGMENT_MEMORY).saturating_mul(self.cc.sndbuf_factor());
        self.sndbuf.size = self.sndbuf.size.max(size.min(self.config.sndbuf_max.0.max(SIZE_MIN)));
    }

    /// Memory that the buffer takes.
    fn sndbuf_memory(&self, sndbuf: &SendBuffer) -> u64 {
        let Bytes(una) = self.board.una_bytes();
        sndbuf.queued - una + (self.board.bursts_out() + sndbuf.pieces.len() as u64) * BOOKKEEPING
    }

    /// The application moves what it can into the buffer; whether it could.
    pub(super) fn refill(&mut self, now: Time) -> bool {
        if !self.sndbuf.is_blocked() {
            return false;
        }
        if self.board.in_flight() < self.window.cwnd {
            self.expand_sndbuf();
            self.usage.cwnd_stamp = now;
        }
        let memory = self.sndbuf_memory(&self.sndbuf);
        if self.sndbuf.size.saturating_sub(memory) < memory / 2 {
            return false;
        }
        self.queue(now)
    }

    /// What fits moves into the buffer; whether anything did.
    pub(super) fn queue(&mut self, now: Time) -> bool {
        let before = self.sndbuf.queued;
        let mss = self.config.mss.0;
        let goal = (BURST_MAX.min(self.window_max.0 / 2) / mss).max(1) * mss;
        let Bytes(next) = self.board.next_bytes();
        let mut sndbuf = std::mem::take(&mut self.sndbuf);
        sndbuf.fill(next, goal, self.window_max.0, |sndbuf| self.sndbuf_memory(sndbuf) < sndbuf.size);
        self.sndbuf = sndbuf;
        if self.sndbuf.queued == before {
            return false;
        }
        self.restart_after_idle(now);
        true
    }

    /// The application begins to write: marks the coming rate samples if it, and nothing else, has kept the pipe from being
    /// full.
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
