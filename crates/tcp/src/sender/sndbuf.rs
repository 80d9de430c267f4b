//! The send buffer: how much of the stream the application has handed over.
//!
//! What the application has written waits until the buffer has room. The buffer starts at 85 KiB and grows to what holds
//! a multiple of cwnd ([`sndbuf_factor`](thalweg_cc::Controller::sndbuf_factor)), up to its limit (`tcp_wmem`). Full, it
//! is refilled once it is two thirds full: the application is woken then, and writes at once.
//!
//! A transfer is one blocking write, however long it waits for room. Whether the application limits the rate is decided
//! when a write begins, and not when its writer wakes: a flow that the buffer limits is not limited by its application.
//!
//! A multiple of cwnd is counted in what a segment would take at worst (4352 bytes), while what lies in the buffer takes
//! its payload and a 64th more, since Linux keeps it in large pieces. This is an approximation: Linux accounts for the memory
//! of every piece.

use super::Sender;
use thalweg_units::{Bytes, Packets, Time};

/// Memory that a segment may take: 1460 bytes with headers and bookkeeping, rounded up to 4096, and a descriptor.
const SEGMENT_MEMORY: u64 = 4352;
/// Fewest segments that the buffer is made for.
const MIN_SEGMENTS: u64 = 10;
/// The smallest buffer: SOCK_MIN_SNDBUF.
const SIZE_MIN: u64 = 4608;
/// A piece of 64 KiB carries about 1 KiB of bookkeeping.
const OVERHEAD_SHIFT: u32 = 6;

/// The application's side of the stream.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// End of what the application wants to send.
    pub written: u64,
    /// End of what lies in the buffer or was sent.
    pub queued: u64,
    /// Bytes of memory that the buffer may take.
    size: u64,
}

impl SendBuffer {
    /// Whether the application waits for room.
    pub fn is_blocked(&self) -> bool {
        self.queued < self.written
    }

    /// Payload that fits.
    fn capacity(&self) -> u64 {
        self.size - (self.size >> OVERHEAD_SHIFT)
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

    /// The application moves what it can into the buffer; whether it could.
    pub(super) fn refill(&mut self, now: Time) -> bool {
        if !self.sndbuf.is_blocked() {
            return false;
        }
        if self.board.in_flight() < self.window.cwnd {
            self.expand_sndbuf();
            self.usage.cwnd_stamp = now;
        }
        let Bytes(una) = self.board.una_bytes();
        let held = self.sndbuf.queued - una;
        let capacity = self.sndbuf.capacity();
        if held > 0 && held > capacity / 3 * 2 {
            return false;
        }
        self.queue(now)
    }

    /// What fits moves into the buffer; whether anything did.
    pub(super) fn queue(&mut self, now: Time) -> bool {
        let Bytes(una) = self.board.una_bytes();
        let limit = una.saturating_add(self.sndbuf.capacity());
        let queued = self.sndbuf.written.min(limit);
        if queued <= self.sndbuf.queued {
            return false;
        }
        self.restart_after_idle(now);
        self.sndbuf.queued = queued;
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
