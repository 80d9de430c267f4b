//! Handles the SACK blocks of an ACK (RFC 2018), and D-SACKs (RFC 2883).
//!
//! An ordinary block affects only segments that no earlier block covered. A first block that lies below the cumulative
//! ACK, or inside the second block, reports a segment that arrived twice.

use super::Sender;
use super::facts::AckFacts;
use super::scoreboard::Flags;
use crate::packet::AckPacket;
use thalweg_units::Time;

impl Sender {
    /// Processes the blocks of `packet`. `prior_una`: the left edge before this ACK.
    pub(super) fn on_sack_blocks(&mut self, now: Time, packet: &AckPacket, prior_una: u64, facts: &mut AckFacts) {
        let blocks = packet.sack.as_slice();
        let mut ranges = [(0, 0); 3];
        for (range, block) in ranges.iter_mut().zip(blocks) {
            *range = (block.start.0, block.end.0);
        }
        let has_dsack =
            is_first_a_duplicate(&ranges[..blocks.len()], packet.next.0) && self.on_dsack(ranges[0], prior_una, facts);
        if self.board.packets_out() == 0 {
            return;
        }
        let duplicate = has_dsack.then_some(ranges[0]);
        if let Some(duplicate) = duplicate {
            self.on_duplicate_range(duplicate, facts);
        }
        // Segments that the same ACK acknowledges cumulatively leave the scoreboard next, and are counted then.
        let edge = self.board.una().max(packet.next.0);
        // A block that repeats one of the previous ACK reports nothing new.
        let repeated = std::mem::replace(&mut self.sack_blocks, ranges);
        let mut count = 0;
        for at in 0..blocks.len() {
            if !repeated.contains(&ranges[at]) {
                ranges[count] = ranges[at];
                count += 1;
            }
        }
        let ranges = &mut ranges[..count];
        if count > 1 {
            ranges.sort_unstable();
        }
        for &(start, end) in ranges.iter() {
            self.on_sack_range(now, start.max(edge), end, facts);
        }
        // Both copies have arrived: none is in flight.
        if let Some((start, end)) = duplicate {
            for seq in start.max(edge)..end.min(self.board.next()) {
                self.board.clear_retransmitted(seq);
            }
        }
    }

    /// Handles a first block that reports a duplicate. Returns whether it counts as a D-SACK.
    fn on_dsack(&mut self, (start, end): (u64, u64), prior_una: u64, facts: &mut AckFacts) -> bool {
        let Some(copies) = end.checked_sub(start).filter(|copies| *copies > 0) else {
            return false;
        };
        let is_probe = copies == 1 && self.probe.as_ref().is_some_and(|probe| probe.end == end);
        facts.is_dsack_of_probe = is_probe;
        self.counters.dsacks += copies;
        // The network duplicates packets too: more D-SACKs than retransmissions prove nothing about the latter.
        if self.counters.dsacks > self.counters.retransmits {
            return false;
        }
        if self.rack.is_reordering_seen && !is_probe {
            self.rack.is_dsack_seen = true;
        }
        facts.is_dsack = true;
        facts.out_of_order += copies;
        if self.episode.undo_marker.is_some_and(|marker| end > marker) && end <= prior_una {
            self.episode.forget_retransmissions(copies);
        }
        true
    }

    /// Handles segments that are still in the scoreboard and were received twice.
    fn on_duplicate_range(&mut self, (start, end): (u64, u64), facts: &mut AckFacts) {
        for seq in start.max(self.board.una())..end.min(self.board.next()) {
            let flags = self.board.segment(seq).flags;
            if flags.has(Flags::EVER_RETRANSMITTED) {
                if self.episode.undo_marker.is_some_and(|marker| seq + 1 > marker) {
                    self.episode.forget_retransmissions(1);
                }
                if flags.has(Flags::SACKED) {
                    facts.reordered_from = facts.reordered_from.min(seq);
                }
            }
        }
    }

    fn on_sack_range(&mut self, now: Time, start: u64, end: u64, facts: &mut AckFacts) {
        let Sender { board, rack, rate, rtt, episode, .. } = self;
        let min_rtt = rtt.min_rtt();
        let mut sacked_end = board.sacked_end();
        board.sack(start, end, |seq, segment, counts| {
            let flags = segment.flags;
            rack.on_delivered(now, seq, segment.sent_at, flags, min_rtt);
            if !flags.has(Flags::EVER_RETRANSMITTED.or(Flags::RETRANSMITTED)) {
                if seq < sacked_end {
                    facts.reordered_from = facts.reordered_from.min(seq);
                }
                facts.is_original_acked |= seq < episode.high_seq;
                facts.first_sacked_at.get_or_insert(segment.sent_at);
                facts.last_sacked_at = segment.sent_at;
            }
            sacked_end = sacked_end.max(seq + 1);
            rate.on_delivered(seq, segment, counts, &mut facts.delivery);
            facts.out_of_order += 1;
            facts.is_data_sacked = true;
        });
        if let Some((seq, rest)) = board.joined.take() {
            facts.delivery.count_burst(seq, rest);
        }
    }
}

/// Returns whether the first of `ranges` reports a duplicate, on an ACK up to `next`.
fn is_first_a_duplicate(ranges: &[(u64, u64)], next: u64) -> bool {
    match ranges {
        [first, ..] if first.0 < next => true,
        [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
        _ => false,
    }
}
