//! RACK (RFC 8985, section 6): a segment is lost if a later transmission has arrived and the reordering window has
//! passed.
//!
//! The window is zero if no reordering was observed on the path, and three segments have arrived beyond a hole or a
//! recovery is in progress. Otherwise it is a quarter of the smallest round-trip time. Once reordering was observed, it
//! grows by a quarter for every round trip in which a D-SACK reported a spurious retransmission, up to the smoothed
//! round-trip time. After 16 recoveries without such a D-SACK it is reset to a quarter.
//!
//! In place of Linux's list in the order of the latest transmission, a cursor passes over the segments sent once, which
//! are in that order by number, and a queue holds the retransmissions. Invalid entries of the queue are dropped when
//! they are reached.

use super::scoreboard::{Flags, Scoreboard};
use std::collections::VecDeque;
use thalweg_units::{Span, Time};

/// Number of segments that must have arrived beyond a hole for it to count as a loss immediately:
/// net.ipv4.tcp_reordering.
pub(super) const DUP_THRESHOLD: u64 = 3;
/// Maximum of the stored reordering degree: net.ipv4.tcp_max_reordering.
const MAX_REORDERING: u64 = 300;
/// Number of recoveries without a D-SACK after which the window is reset (RFC 8985, section 6.2, step 4).
const PERSIST_RECOVERIES: u8 = 16;

#[derive(Debug)]
pub(super) struct Rack {
    /// Send time of the most recently sent segment that has arrived.
    sent_at: Time,
    /// The number after that segment.
    end: u64,
    /// Round-trip time of the segment delivered last, which may have been sent before that one.
    rtt: Span,
    /// Whether a segment was delivered, or a reduction undone, since the last call of [`Rack::detect_if_advanced`].
    has_advanced: bool,
    /// Whether reordering was observed on the path.
    pub is_reordering_seen: bool,
    /// Maximum reordering degree observed since its last reset, in segments, from [`DUP_THRESHOLD`] to
    /// [`MAX_REORDERING`].
    pub reordering: u64,
    /// Length of the reordering window in quarters of the smallest round-trip time.
    window_steps: u8,
    /// Number of recoveries until the window is reset.
    persist: u8,
    /// Whether a D-SACK of a spurious retransmission has arrived in this round.
    pub is_dsack_seen: bool,
    /// Count of deliveries when the window last grew: it grows at most once per round trip.
    grown_at_delivered: u64,
    /// First segment, among those sent only once, that detection has not passed.
    cursor: u64,
    /// No segment below it that was sent only once was sent after `sent_at`.
    edge: u64,
    /// Retransmissions in the order of transmission.
    resent: VecDeque<(Time, u64)>,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            sent_at: Time::ZERO,
            end: 0,
            rtt: Span::ZERO,
            has_advanced: false,
            is_reordering_seen: false,
            reordering: DUP_THRESHOLD,
            window_steps: 1,
            persist: 0,
            is_dsack_seen: false,
            grown_at_delivered: 0,
            cursor: 0,
            edge: 0,
            resent: VecDeque::new(),
        }
    }

    /// Records the delivery of segment `seq`, last sent at `sent_at`.
    pub fn on_delivered(&mut self, now: Time, seq: u64, sent_at: Time, flags: Flags, min_rtt: Option<Span>) {
        let rtt = now.since(sent_at);
        // The RTT is shorter than the path's minimum: an earlier copy has arrived.
        let was_resent = flags.has(Flags::EVER_RETRANSMITTED.or(Flags::RETRANSMITTED));
        if was_resent && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.has_advanced = true;
        self.rtt = rtt;
        if (sent_at, seq + 1) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (sent_at, seq + 1);
        }
    }

    /// Records the retransmission of segment `seq`.
    pub fn on_retransmitted(&mut self, now: Time, seq: u64) {
        self.resent.push_back((now, seq));
    }

    /// Records reordering by `sacked_end - low` segments: the original of segment `low` has arrived after a higher
    /// segment.
    pub fn on_reordering(&mut self, low: u64, sacked_end: u64) {
        let Some(degree) = sacked_end.checked_sub(low).filter(|degree| *degree > 0) else {
            return;
        };
        if degree > self.reordering {
            self.reordering = degree.min(MAX_REORDERING);
        }
        self.is_reordering_seen = true;
    }

    /// Lowers the reordering degree to [`DUP_THRESHOLD`] after a timeout.
    pub fn reset_reordering_degree(&mut self) {
        self.reordering = self.reordering.min(DUP_THRESHOLD);
    }

    /// Makes the next search for losses run even if nothing was delivered.
    pub fn look_again(&mut self) {
        self.has_advanced = true;
    }

    /// Restarts detection after all loss marks were cleared.
    pub fn on_unmarked(&mut self, board: &Scoreboard) {
        self.cursor = board.una();
        let is_resent =
            |flags: Flags| flags.has(Flags::EVER_RETRANSMITTED) && !flags.has(Flags::SACKED.or(Flags::UNLISTED));
        let resent = (board.una()..board.next()).filter(|seq| is_resent(board.segment(*seq).flags));
        let mut resent: Vec<_> = resent.map(|seq| (board.segment(seq).sent_at, seq)).collect();
        resent.sort_unstable();
        self.resent = resent.into();
    }

    /// Records a recovery that ended without an undo.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Records a recovery that was undone by D-SACKs.
    pub fn on_dsack_undo(&mut self) {
        self.persist = PERSIST_RECOVERIES.min(self.persist + 1);
    }

    /// Adapts the reordering window after an ACK. `prior_delivered` is the count of deliveries when its newest segment
    /// was sent.
    pub fn adapt_window(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        let Some(prior_delivered) = prior_delivered else {
            return;
        };
        if prior_delivered < self.grown_at_delivered {
            self.is_dsack_seen = false;
        }
        if self.is_dsack_seen {
            self.window_steps = self.window_steps.saturating_add(1);
            self.is_dsack_seen = false;
            self.grown_at_delivered = delivered;
            self.persist = PERSIST_RECOVERIES;
        } else if self.persist == 0 {
            self.window_steps = 1;
        }
    }

    /// Returns the reordering window. `is_recovering`: the state is Recovery or Loss.
    pub fn window(&self, sacked_out: u64, is_recovering: bool, min_rtt: Option<Span>, srtt: Option<Span>) -> Span {
        if !self.is_reordering_seen && (is_recovering || sacked_out >= self.reordering) {
            return Span::ZERO;
        }
        let (Some(min_rtt), Some(srtt)) = (min_rtt, srtt) else {
            return Span::ZERO;
        };
        Span(min_rtt.0 / 4 * u64::from(self.window_steps)).min(srtt)
    }

    /// Whether the segment was sent at least one round-trip time ago, so its delivery is overdue.
    pub fn is_overdue(&self, now: Time, sent_at: Time) -> bool {
        now.since(sent_at) >= self.rtt
    }

    /// Like [`Rack::detect`], but only if a segment was delivered, or a reduction undone, since the last call.
    pub fn detect_if_advanced(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        if !std::mem::take(&mut self.has_advanced) {
            return None;
        }
        self.detect(now, board, window)
    }

    /// Marks as lost those segments sent before a delivered one that are overdue by at least `window`. Returns the
    /// longest remaining wait among those that are not overdue yet, if any.
    pub fn detect(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        let first = self.detect_sent_once(now, board, window);
        let second = self.detect_resent(now, board, window);
        first.max(second)
    }

    /// Whether a segment was sent before the most recently sent one that has arrived.
    pub(super) fn is_older(&self, sent_at: Time, seq: u64) -> bool {
        (sent_at, seq + 1) < (self.sent_at, self.end)
    }

    /// Returns the remaining time until a segment counts as lost.
    pub(super) fn remaining(&self, now: Time, sent_at: Time, window: Span) -> Span {
        (self.rtt + window).saturating_sub(now.since(sent_at))
    }

    fn detect_sent_once(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        self.cursor = self.cursor.max(board.una());
        let is_listed =
            |flags: Flags| !flags.has(Flags::SACKED.or(Flags::EVER_RETRANSMITTED).or(Flags::UNLISTED).or(Flags::LOST));
        loop {
            if self.cursor >= board.next() {
                return None;
            }
            let segment = board.segment(self.cursor);
            if is_listed(segment.flags) {
                if !self.is_older(segment.sent_at, self.cursor) {
                    return None;
                }
                if self.remaining(now, segment.sent_at, window) > Span::ZERO {
                    break;
                }
                board.mark_lost(self.cursor);
                board.segment_mut(self.cursor).flags.set(Flags::UNLISTED);
            }
            self.cursor += 1;
        }
        // At least the segment at the cursor is still waiting. The last waiting segment is usually the last one below
        // the edge that has not arrived, since losses are detected in the order of sending.
        self.edge = self.edge.max(self.cursor);
        while self.edge < board.next() {
            let segment = board.segment(self.edge);
            let is_older = self.is_older(segment.sent_at, self.edge);
            if !is_older && !segment.flags.has(Flags::EVER_RETRANSMITTED) {
                break;
            }
            self.edge += 1;
        }
        let mut last = self.cursor;
        let mut limit = self.edge;
        while let Some(seq) = board.highest_unsacked_below(limit).filter(|seq| *seq > self.cursor) {
            if is_listed(board.segment(seq).flags) {
                last = seq;
                break;
            }
            limit = seq;
        }
        Some(self.remaining(now, board.segment(last).sent_at, window))
    }

    fn detect_resent(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        let is_current = |board: &Scoreboard, (sent_at, seq): (Time, u64)| {
            if seq < board.una() {
                return false;
            }
            let segment = board.segment(seq);
            let flags = segment.flags;
            segment.sent_at == sent_at
                && !flags.has(Flags::SACKED.or(Flags::UNLISTED))
                && !flags.awaits_retransmission()
        };
        loop {
            let &entry = self.resent.front()?;
            if is_current(board, entry) {
                if !self.is_older(entry.0, entry.1) {
                    return None;
                }
                if self.remaining(now, entry.0, window) > Span::ZERO {
                    break;
                }
                board.mark_lost(entry.1);
                board.segment_mut(entry.1).flags.set(Flags::UNLISTED);
            }
            self.resent.pop_front();
        }
        let behind = self.resent.partition_point(|entry| self.is_older(entry.0, entry.1));
        let mut last = behind - 1;
        while !is_current(board, self.resent[last]) {
            last -= 1;
        }
        // Removes invalidated entries, so that the next ACK does not process them again.
        self.resent.drain(last + 1..behind);
        Some(self.remaining(now, self.resent[last].0, window))
    }

    /// Drops the oldest retransmissions as far as they are acknowledged.
    pub fn trim(&mut self, una: u64) {
        while self.resent.front().is_some_and(|entry| entry.1 < una) {
            self.resent.pop_front();
        }
    }
}
