//! The content of the send buffer.

use std::collections::VecDeque;
use thalweg_units::Time;

/// The application's side of the stream.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// Stream offset of the end of the data that the application wants to send.
    pub written: u64,
    /// Stream offset of the end of the data that is in the buffer or was sent.
    pub queued: u64,
    /// Current limit of the buffer's memory in bytes (Linux: `sk_sndbuf`).
    pub(super) size: u64,
    /// Pieces that were not, or only partly, sent.
    pub(super) pieces: VecDeque<Piece>,
    /// End of the last piece that was pushed.
    pub(super) pushed: u64,
    /// Whether the application is writing, or about to write.
    pub(super) is_writing: bool,
    /// Whether the application is off-CPU, so that its writes wait.
    pub(super) is_held: bool,
    /// Bytes that the current write has yet to queue; 0 between two writes.
    pub(super) write_left: u64,
    /// Whether the current write has queued anything.
    pub(super) has_queued: bool,
    /// Number of segments sent during the current write.
    pub(super) write_sent: u64,
    /// Time at which the previous write ends and the next one begins.
    pub(super) busy_until: Option<Time>,
}

/// A part of the stream in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the last segment of the piece carries the PSH flag.
    pub(super) is_pushed: bool,
}

impl SendBuffer {
    /// Whether the application waits for free memory.
    pub fn is_blocked(&self) -> bool {
        self.queued < self.written && !self.is_writing
    }

    /// Returns the time until which the application is busy, after which it continues to write.
    pub fn busy_until(&self) -> Option<Time> {
        self.busy_until
    }

    /// Starts writing, if the application has data to write.
    pub fn begin_writing(&mut self) {
        self.is_writing = self.queued < self.written;
    }

    /// Returns the end of the next piece to send, and whether it is the last one; `None` if there is nothing to send.
    pub fn head(&self) -> Option<(u64, bool)> {
        self.pieces.front().map(|piece| (piece.end, self.pieces.len() == 1))
    }

    /// Records that the stream was sent up to `end`. Returns whether that is the end of a piece with the PSH flag.
    pub fn on_sent(&mut self, end: u64) -> bool {
        let Some(piece) = self.pieces.front_mut() else { return false };
        piece.start = end;
        if piece.end > end {
            return false;
        }
        let is_pushed = piece.is_pushed;
        self.pieces.pop_front();
        is_pushed
    }

    /// Counts a segment sent during a write.
    pub fn count_sent(&mut self) {
        if self.is_writing && self.busy_until.is_none() {
            self.write_sent += 1;
        }
    }

    /// Discards unsent data: the stream ends at `next`.
    pub fn cut(&mut self, next: u64) {
        (self.written, self.queued) = (next, next);
        self.pieces.clear();
        (self.is_writing, self.write_left, self.busy_until) = (false, 0, None);
    }

    /// Sets the PSH flag at the end of the last piece.
    pub fn push_last(&mut self) {
        if let Some(last) = self.pieces.back_mut() {
            last.is_pushed = true;
            self.pushed = last.end;
        }
    }

    /// Moves the rest of the current write into the last piece, until that has `goal` bytes.
    pub fn fill_last(&mut self, goal: u64) {
        let Some(last) = self.pieces.back_mut() else { return };
        let size = (last.start + goal - last.end).min(self.write_left);
        last.end += size;
        if !self.has_queued {
            last.is_pushed = false;
        }
        self.queued += size;
        self.write_left -= size;
        self.has_queued = true;
    }

    /// Whether the last piece has at least `goal` bytes; true for an empty buffer.
    pub fn is_last_full(&self, goal: u64) -> bool {
        self.pieces.back().is_none_or(|last| last.end - last.start >= goal)
    }
}
