//! RACK (RFC 8985, section 6): a segment is lost if one that was sent later has arrived, and the reordering window has
//! passed since.
//!
//! The window is zero as long as no reordering was seen on the path and three segments have arrived beyond the hole;
//! otherwise a quarter of the smallest round-trip time, one quarter more for every round trip in which a D-SACK
//! reported a spurious retransmission, up to the smoothed round-trip time. After 16 recoveries without one it is a
//! quarter again.
//!
//! Linux iterates over a list of segments in the order of their latest transmission. Here two queues without links
//! replace the list: segments sent once are in that order by number, retransmissions are in a separate queue. Entries
//! that an ACK, a SACK or a later retransmission made void are dropped when they are reached, so each is processed
//! once.

use super::scoreboard::{Flags, Scoreboard};
use std::collections::VecDeque;
use thalweg_units::{Span, Time};

/// Number of segments that must have arrived beyond a hole for it to count as a loss at once: net.ipv4.tcp_reordering.
pub(super) const DUP_THRESHOLD: u64 = 3;
/// The largest reordering degree that is remembered: net.ipv4.tcp_max_reordering.
const MAX_REORDERING: u64 = 300;
/// Recoveries without a D-SACK after which the window shrinks back (RFC 8985, section 6.2, step 4).
const PERSIST_RECOVERIES: u8 = 16;

/// State of the loss detection.
#[derive(Debug)]
pub(super) struct Rack {
    /// Send time of the most recently sent segment that has arrived.
    sent_at: Time,
    /// The number behind that segment.
    end: u64,
    /// Round-trip time.
    rtt: Span,
    /// Whether a segment was delivered since the last search for losses.
    has_advanced: bool,
    /// Whether reordering was seen on the path.
    pub is_reordering_seen: bool,
    /// Maximum reordering seen on the path in segments, at least [`DUP_THRESHOLD`].
    pub reordering: u64,
    /// Length of the reordering window in quarters of the smallest round-trip time.
    window_steps: u8,
    /// Recoveries until the window shrinks back.
    persist: u8,
    /// Whether a D-SACK of a spurious retransmission has arrived in this round.
    pub is_dsack_seen: bool,
    /// Deliveries when the window last grew: it grows at most once per round trip.
    grown_at_delivered: u64,
    /// First segment, of those sent once, that the walk has not passed.
    cursor: u64,
    /// The first segment that, if sent once, was not sent before `sent_at`.
    edge: u64,
    /// Retransmissions in the order of their departure.
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

    /// The segment `seq`, last sent at `sent_at`, has arrived.
    pub fn on_delivered(&mut self, now: Time, seq: u64, sent_at: Time, flags: Flags, min_rtt: Option<Span>) {
        let rtt = now.since(sent_at);
        // Faster than the path can be: it was an earlier copy that arrived.
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

    /// The segment `seq` was retransmitted.
    pub fn on_retransmitted(&mut self, now: Time, seq: u64) {
        self.resent.push_back((now, seq));
    }

    /// A segment below one that has arrived was delivered without a retransmission: the path reorders, by `sacked_end -
    /// low` segments.
    pub fn on_reordering(&mut self, low: u64, sacked_end: u64) {
        let Some(degree) = sacked_end.checked_sub(low).filter(|degree| *degree > 0) else {
            return;
        };
        if degree > self.reordering {
            self.reordering = degree.min(MAX_REORDERING);
        }
        self.is_reordering_seen = true;
    }

    /// A timeout during apparent reordering: its degree was overestimated.
    pub fn reset_reordering_degree(&mut self) {
        self.reordering = self.reordering.min(DUP_THRESHOLD);
    }

    /// Requests a search for losses, even if nothing was delivered.
    pub fn look_again(&mut self) {
        self.has_advanced = true;
    }

    /// No segment counts as lost any more: segments that were skipped because they were lost are examined again.
    pub fn on_unmarked(&mut self, board: &Scoreboard) {
        self.cursor = board.una();
        let is_resent =
            |flags: Flags| flags.has(Flags::EVER_RETRANSMITTED) && !flags.has(Flags::SACKED.or(Flags::UNLISTED));
        let resent = (board.una()..board.next()).filter(|seq| is_resent(board.segment(*seq).flags));
        let mut resent: Vec<_> = resent.map(|seq| (board.segment(seq).sent_at, seq)).collect();
        resent.sort_unstable();
        self.resent = resent.into();
    }

    /// A recovery has ended without an undo.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was undone by D-SACKs.
    pub fn on_dsack_undo(&mut self) {
        self.persist = PERSIST_RECOVERIES.min(self.persist + 1);
    }

    /// Adapts the reordering window after the ACK whose newest segment was sent when `prior_delivered` had arrived.
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

    /// Returns the reordering window. `is_recovering`: in recovery or loss state.
    pub fn window(&self, sacked_out: u64, is_recovering: bool, min_rtt: Option<Span>, srtt: Option<Span>) -> Span {
        if !self.is_reordering_seen && (is_recovering || sacked_out >= self.reordering) {
            return Span::ZERO;
        }
        let (Some(min_rtt), Some(srtt)) = (min_rtt, srtt) else {
            return Span::ZERO;
        };
        Span(min_rtt.0 / 4 * u64::from(self.window_steps)).min(srtt)
    }

    /// Whether the segment was sent so long ago that its arrival is overdue.
    pub fn is_overdue(&self, now: Time, sent_at: Time) -> bool {
        now.since(sent_at) >= self.rtt
    }

    /// Like [`Rack::detect`], but only if something was delivered since.
    pub fn detect_if_advanced(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        if !std::mem::take(&mut self.has_advanced) {
            return None;
        }
        self.detect(now, board, window)
    }

    /// Marks as lost the segments that are overdue by more than `window`; returns the longest wait for the others, if
    /// there are any.
    pub fn detect(&mut self, now: Time, board: &mut Scoreboard, window: Span) -> Option<Span> {
        let first = self.detect_sent_once(now, board, window);
        let second = self.detect_resent(now, board, window);
        first.max(second)
    }

    /// Whether a segment was sent before the most recently sent one that has arrived.
    pub(super) fn is_older(&self, sent_at: Time, seq: u64) -> bool {
        (sent_at, seq + 1) < (self.sent_at, self.end)
    }

    /// Returns the remaining wait for a segment.
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
        // At least the segment at the cursor waits. The last waiting segment is nearly always the last one below the
        // edge that has not arrived: losses are found in the order of sending, so that nothing before a lost one waits,
        // unless a timeout was undone.
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
        // Removes void entries, so that the next ACK does not process them again.
        self.resent.drain(last + 1..behind);
        Some(self.remaining(now, self.resent[last].0, window))
    }

    /// Drops retransmissions that were acknowledged.
    pub fn trim(&mut self, una: u64) {
        while self.resent.front().is_some_and(|entry| entry.1 < una) {
            self.resent.pop_front();
        }
    }
}
