//! The state of every segment that was sent and is not yet cumulatively acknowledged.
//!
//! Segments are stored in a ring buffer by number. Four counts are updated incrementally and yield the number of
//! segments in flight:
//!
//! `in_flight = packets_out - sacked_out - lost_out + retrans_out` (RFC 6675's pipe, as Linux keeps it).
//!
//! Lost segments that wait for their retransmission are in a heap by number; selectively acknowledged segments are in a
//! set of ranges.

use crate::ranges::Ranges;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use thalweg_cc::LostSegment;
use thalweg_units::{Bytes, Packets, Time};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// The segment is selectively acknowledged.
    pub const SACKED: Flags = Flags(1);
    /// The segment is deemed lost.
    pub const LOST: Flags = Flags(2);
    /// A retransmission of the segment counts as in flight.
    pub const RETRANSMITTED: Flags = Flags(4);
    /// The segment was retransmitted at least once.
    pub const EVER_RETRANSMITTED: Flags = Flags(8);
    /// RACK declared the segment lost and does not examine it until it is retransmitted.
    pub const UNLISTED: Flags = Flags(16);
    /// The segment was sent while the sender was application-limited.
    pub const APP_LIMITED: Flags = Flags(32);
    /// The segment carries the PSH flag, each time it is sent.
    pub const PUSHED: Flags = Flags(64);
    /// The segment was the last one of its burst when it was first sent.
    pub const BURST_END: Flags = Flags(128);

    /// Whether any of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets all of `other`.
    pub fn set(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// Clears all of `other`.
    pub fn clear(&mut self, other: Flags) {
        self.0 &= !other.0;
    }

    /// Returns the union of both sets of flags.
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether the segment is lost and its retransmission has not been sent.
    pub fn awaits_retransmission(self) -> bool {
        self.has(Flags::LOST) && !self.has(Flags::SACKED.or(Flags::RETRANSMITTED))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Time of its last (re)transmission.
    pub sent_at: Time,
    /// Start of the send interval of its rate sample.
    pub first_sent_at: Time,
    /// Start of the ACK interval of its rate sample.
    pub delivered_at: Time,
    /// Count of delivered segments at the departure of this one.
    pub delivered: u64,
    /// Offset of the payload in the stream.
    pub offset: u64,
    /// Payload bytes.
    pub len: u16,
    /// State flags.
    pub flags: Flags,
}

/// Counts stored with a segment in addition to the delivery state, for a controller that watches losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendCounts {
    /// Segments in flight at the departure, including this one.
    pub inflight: u32,
    /// Segments deemed lost before the departure (modulo 2^32).
    pub lost: u32,
    /// `Counters::marked` before the departure (modulo 2^32).
    pub delivered_ce: u32,
}

/// Returns the increase of the count `total` since a segment stored its lower half.
pub(super) fn since(total: u64, then: u32) -> u64 {
    u64::from((total as u32).wrapping_sub(then))
}

/// The segments from `una` up to `next`.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    una_bytes: u64,
    next_bytes: u64,
    sacked: Ranges,
    sacked_out: u64,
    lost_out: u64,
    retrans_out: u64,
    bursts_out: u64,
    lost_total: u64,
    to_retransmit: BinaryHeap<Reverse<u64>>,
    /// Whether the controller watches losses: `counts`, `newly_lost` and `joined` are maintained.
    pub is_watched: bool,
    /// The counts of each segment.
    counts: VecDeque<SendCounts>,
    /// Segments declared lost since the last report to the controller.
    pub newly_lost: Vec<LostSegment>,
    /// The latest part of a burst that a SACK moved to the preceding buffer: its last segment, and the number of
    /// segments of the burst after it.
    pub joined: Option<(u64, u64)>,
}

impl Scoreboard {
    /// Creates a scoreboard without segments. `is_watched`: records newly lost segments for the controller.
    pub fn new(is_watched: bool) -> Scoreboard {
        Scoreboard { is_watched, ..Scoreboard::default() }
    }

    /// Returns the first segment that is not cumulatively acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Returns the first segment that was not yet sent.
    pub fn next(&self) -> u64 {
        self.una + self.segments.len() as u64
    }

    /// Returns the offset of segment `una` in the stream.
    pub fn una_bytes(&self) -> Bytes {
        Bytes(self.una_bytes)
    }

    /// Returns the offset of segment `next` in the stream.
    pub fn next_bytes(&self) -> Bytes {
        Bytes(self.next_bytes)
    }

    /// Returns the number of segments sent and not cumulatively acknowledged.
    pub fn packets_out(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Returns the number of outstanding segments that are selectively acknowledged.
    pub fn sacked_out(&self) -> u64 {
        self.sacked_out
    }

    /// Returns the number of outstanding segments that are declared lost, whether or not retransmitted since.
    pub fn lost_out(&self) -> u64 {
        self.lost_out
    }

    /// Returns the number of outstanding segments of which a retransmission counts as in flight.
    pub fn retrans_out(&self) -> u64 {
        self.retrans_out
    }

    /// Returns the number of bursts whose last segment was sent and is not cumulatively acknowledged.
    pub fn bursts_out(&self) -> u64 {
        self.bursts_out
    }

    /// Returns the number of segments and retransmissions declared lost since the start of the connection.
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Returns the number of segments deemed to be in the network.
    pub fn in_flight(&self) -> Packets {
        Packets(self.packets_out() + self.retrans_out - self.sacked_out - self.lost_out)
    }

    /// Returns the number after the highest selectively acknowledged segment; `una` if no segment is selectively
    /// acknowledged.
    pub fn sacked_end(&self) -> u64 {
        self.sacked.end().unwrap_or(self.una)
    }

    /// Returns the highest segment from `una` up to, but not including, `limit` that is not selectively acknowledged.
    pub fn highest_unsacked_below(&self, limit: u64) -> Option<u64> {
        self.sacked.highest_missing(self.una, limit)
    }

    /// Returns the segment `seq`, which must be in the scoreboard.
    pub fn segment(&self, seq: u64) -> &Segment {
        &self.segments[(seq - self.una) as usize]
    }

    /// Returns the segment `seq` for changes that do not affect the counts.
    pub fn segment_mut(&mut self, seq: u64) -> &mut Segment {
        &mut self.segments[(seq - self.una) as usize]
    }

    /// Returns the first segment, if there is one.
    pub fn head(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// Appends the segment `next`, which was just sent.
    pub fn push(&mut self, segment: Segment, counts: SendCounts) {
        if self.is_watched {
            self.counts.push_back(counts);
        }
        self.next_bytes += u64::from(segment.len);
        self.bursts_out += u64::from(segment.flags.has(Flags::BURST_END));
        self.segments.push_back(segment);
    }

    /// Removes the first segment.
    pub fn pop(&mut self) -> Option<(Segment, SendCounts)> {
        let segment = self.segments.pop_front()?;
        let counts = self.counts.pop_front().unwrap_or_default();
        self.una += 1;
        self.una_bytes += u64::from(segment.len);
        let flags = segment.flags;
        self.sacked_out -= u64::from(flags.has(Flags::SACKED));
        self.lost_out -= u64::from(flags.has(Flags::LOST));
        self.retrans_out -= u64::from(flags.has(Flags::RETRANSMITTED));
        self.bursts_out -= u64::from(flags.has(Flags::BURST_END));
        Some((segment, counts))
    }

    /// Cleans up after a series of [`Scoreboard::pop`].
    pub fn trim(&mut self) {
        self.sacked.remove_below(self.una);
        if self.lost_out == 0 {
            self.to_retransmit.clear();
        }
    }

    /// Marks `start..end` as selectively acknowledged. Calls `take` with every newly acknowledged segment, in ascending
    /// order, before its flags change.
    pub fn sack(&mut self, start: u64, end: u64, mut take: impl FnMut(u64, &mut Segment, SendCounts)) {
        let (start, end) = (start.max(self.una), end.min(self.next()));
        // Moved out of `self`, so that the segments can be changed together with the set.
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(start, end, |from, to| {
            for seq in from..to {
                let segment = &mut self.segments[(seq - self.una) as usize];
                take(seq, segment, self.counts.get((seq - self.una) as usize).copied().unwrap_or_default());
                let flags = &mut segment.flags;
                let was_lost = flags.has(Flags::LOST);
                // A retransmission of a segment that is no longer deemed lost (after an undo) stays in flight, since
                // the original has probably arrived.
                if was_lost && flags.has(Flags::RETRANSMITTED) {
                    flags.clear(Flags::RETRANSMITTED);
                    self.retrans_out -= 1;
                }
                if was_lost {
                    flags.clear(Flags::LOST);
                    self.lost_out -= 1;
                }
                flags.set(Flags::SACKED);
                self.sacked_out += 1;
            }
            if self.is_watched {
                self.split_at_sack(from, to);
            }
        });
        self.sacked = sacked;
    }

    /// Returns the number of segments from `next` on that were sent in the same burst as the segment before `next`,
    /// whose flags are `before`, and were not separated from it since.
    pub fn rest_of_burst(&self, before: Flags, next: u64) -> u64 {
        let is_apart = |flags: Flags| flags.has(Flags::SACKED.or(Flags::EVER_RETRANSMITTED));
        let mut is_end = before.has(Flags::BURST_END.or(Flags::EVER_RETRANSMITTED));
        let mut rest = 0;
        for segment in self.segments.range((next - self.una) as usize..) {
            if is_end || is_apart(segment.flags) {
                break;
            }
            rest += 1;
            is_end = segment.flags.has(Flags::BURST_END);
        }
        rest
    }

    /// Handles a selective acknowledgement of `from..to` that ends within a burst. If the acknowledged part of that
    /// burst follows another acknowledged segment, the kernel with BBRv3 moves this part to the preceding buffer, and
    /// reduces the recorded number of segments in flight of the rest of the burst by the length of this part.
    fn split_at_sack(&mut self, from: u64, to: u64) {
        let flags = |seq: u64| self.segments[(seq - self.una) as usize].flags;
        let rest = self.rest_of_burst(flags(to - 1), to);
        let mut start = to - 1;
        while start > from && !flags(start - 1).has(Flags::BURST_END) {
            start -= 1;
        }
        let is_joining = start > from || (from > self.una && flags(from - 1).has(Flags::SACKED));
        if rest == 0 || !is_joining {
            return;
        }
        self.joined = Some((to - 1, rest));
        for seq in to..to + rest {
            let counts = &mut self.counts[(seq - self.una) as usize];
            counts.inflight = counts.inflight.saturating_sub((to - start) as u32);
        }
    }

    /// Handles the arrival of the retransmission of `seq` in addition to the original.
    pub fn clear_retransmitted(&mut self, seq: u64) {
        let flags = &mut self.segments[(seq - self.una) as usize].flags;
        if flags.has(Flags::RETRANSMITTED) {
            flags.clear(Flags::RETRANSMITTED);
            self.retrans_out -= 1;
        }
    }

    /// Marks the segment `seq` as lost, or its retransmission if the segment is already marked. A retransmission of a
    /// segment whose mark was cleared by an undo stays in flight until the segment is marked twice, as in Linux.
    pub fn mark_lost(&mut self, seq: u64) {
        let flags = &mut self.segments[(seq - self.una) as usize].flags;
        if flags.has(Flags::SACKED) {
            return;
        }
        if !flags.has(Flags::LOST) {
            flags.set(Flags::LOST);
            self.lost_out += 1;
        } else if flags.has(Flags::RETRANSMITTED) {
            flags.clear(Flags::RETRANSMITTED);
            self.retrans_out -= 1;
        } else {
            return;
        }
        self.lost_total += 1;
        self.to_retransmit.push(Reverse(seq));
        if self.is_watched {
            let index = (seq - self.una) as usize;
            let (segment, counts) = (&self.segments[index], &self.counts[index]);
            self.newly_lost.push(LostSegment {
                inflight_at_send: Packets(u64::from(counts.inflight)),
                lost: Packets(since(self.lost_total, counts.lost)),
                is_app_limited: segment.flags.has(Flags::APP_LIMITED),
            });
        }
    }

    /// Clears all loss marks.
    pub fn unmark_all_lost(&mut self) {
        for segment in &mut self.segments {
            segment.flags.clear(Flags::LOST);
        }
        self.lost_out = 0;
        self.to_retransmit.clear();
    }

    /// Returns the first segment that waits for its retransmission; as in Linux, none unless `lost_out` exceeds
    /// `retrans_out`.
    pub fn first_to_retransmit(&mut self) -> Option<u64> {
        if self.lost_out <= self.retrans_out {
            return None;
        }
        while let Some(&Reverse(seq)) = self.to_retransmit.peek() {
            if seq >= self.una && self.segment(seq).flags.awaits_retransmission() {
                return Some(seq);
            }
            self.to_retransmit.pop();
        }
        None
    }

    /// Records the retransmission of segment `seq`. The retransmission of a loss probe does not count as in flight.
    pub fn mark_retransmitted(&mut self, seq: u64, is_probe: bool, counts: SendCounts) -> &mut Segment {
        if let Some(kept) = self.counts.get_mut((seq - self.una) as usize) {
            *kept = counts;
        }
        let segment = &mut self.segments[(seq - self.una) as usize];
        segment.flags.set(Flags::EVER_RETRANSMITTED);
        segment.flags.clear(Flags::UNLISTED);
        if !is_probe && !segment.flags.has(Flags::RETRANSMITTED) {
            segment.flags.set(Flags::RETRANSMITTED);
            self.retrans_out += 1;
        }
        segment
    }

    /// Verifies the incremental counts, the ranges and the heap by scanning all segments.
    ///
    /// # Panics
    /// If one of them is wrong.
    pub fn verify(&self) {
        let count = |flag: Flags| self.segments.iter().filter(|s| s.flags.has(flag)).count() as u64;
        assert_eq!(count(Flags::SACKED), self.sacked_out, "sacked_out");
        assert_eq!(count(Flags::LOST), self.lost_out, "lost_out");
        assert_eq!(count(Flags::RETRANSMITTED), self.retrans_out, "retrans_out");
        assert_eq!(count(Flags::BURST_END), self.bursts_out, "bursts_out");
        let bytes: u64 = self.segments.iter().map(|s| u64::from(s.len)).sum();
        assert_eq!(self.una_bytes + bytes, self.next_bytes, "bytes in the scoreboard");
        assert!(self.packets_out() >= self.sacked_out + self.lost_out, "more left out than there are");
        let sacked: u64 = self.sacked.iter().map(|(start, end)| end - start).sum();
        assert_eq!(sacked, self.sacked_out, "ranges of what is sacked");
        for (start, end) in self.sacked.iter() {
            assert!((start..end).all(|seq| self.segment(seq).flags.has(Flags::SACKED)), "{start}..{end} is sacked");
        }
        let waiting = (self.una..self.next()).filter(|seq| self.segment(*seq).flags.awaits_retransmission());
        for seq in waiting {
            assert!(self.to_retransmit.iter().any(|entry| entry.0 == seq), "segment {seq} is lost and forgotten");
        }
    }
}
