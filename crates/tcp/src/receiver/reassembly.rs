//! The received ranges, and the SACK blocks that report them.
//!
//! The blocks are those that changed last, the latest first (RFC 2018, section 4): Linux stores four and drops older
//! ones, so a segment next to a dropped block is reported alone. A duplicate is reported once, before them (RFC 2883),
//! and not at all if its ACK was delayed and another segment arrived in the meantime.

use crate::kernel::Held;
use crate::packet::{Data, SackBlock, SackList, Seq};
use std::collections::VecDeque;

/// Number of blocks that are stored: TCP_NUM_SACKS.
const BLOCKS: usize = 4;
/// Number of blocks after which another one, new or extended, makes Linux send the compressed ACK:
/// TCP_SACK_BLOCKS_EXPECTED.
const EXPECTED_BLOCKS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    InOrder {
        /// Whether the segment has filled the last gap.
        is_gap_filled: bool,
    },
    /// The segment is beyond a gap.
    OutOfOrder { is_new: bool },
    /// The segment had been delivered before.
    Duplicate,
}

/// A contiguous range of segments beyond a gap: numbers from `start` up to, but not including, `end`. Its `bytes` of
/// payload end at the stream offset `end_bytes`.
#[derive(Clone, Copy, Debug)]
struct Island {
    start: u64,
    end: u64,
    end_bytes: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Reassembly {
    next: u64,
    next_bytes: u64,
    islands: VecDeque<Island>,
    held_bytes: u64,
    blocks: [SackBlock; BLOCKS],
    block_count: usize,
    duplicate: Option<SackBlock>,
}

impl Reassembly {
    /// Returns the first segment that has not arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes that have arrived in order.
    pub fn next_bytes(&self) -> u64 {
        self.next_bytes
    }

    /// Returns the segments beyond a gap.
    pub fn held(&self) -> Held {
        Held { bytes: self.held_bytes, runs: self.islands.len() as u64 }
    }

    /// Returns the distance from the end of the in-order data to the end of the data beyond a gap, in bytes.
    pub fn span_bytes(&self) -> u64 {
        self.islands.back().map_or(0, |last| last.end_bytes - self.next_bytes)
    }

    /// Whether there is data beyond a gap.
    pub fn has_gap(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Whether the segment would extend a block after the first [`EXPECTED_BLOCKS`], or start one in addition to at
    /// least that many.
    pub fn would_open_block(&self, seq: Seq) -> bool {
        if seq.0 <= self.next {
            return false;
        }
        let place = self.blocks().iter().position(|block| touches(block, one(seq)));
        place.unwrap_or(self.block_count) >= EXPECTED_BLOCKS
    }

    /// Handles a segment.
    pub fn on_data(&mut self, data: &Data) -> Arrival {
        let seq = data.seq;
        if seq.0 < self.next {
            self.report_duplicate(seq);
            return Arrival::Duplicate;
        }
        if seq.0 > self.next {
            let is_new = self.hold(data);
            if !is_new {
                self.report_duplicate(seq);
            }
            self.add_block(one(seq));
            return Arrival::OutOfOrder { is_new };
        }
        self.next += 1;
        self.next_bytes += u64::from(data.len);
        let had_gap = self.has_gap();
        if let Some(island) = self.islands.front().copied().filter(|island| island.start == self.next) {
            self.islands.pop_front();
            self.next = island.end;
            self.next_bytes = island.end_bytes;
            self.held_bytes -= island.bytes;
        }
        if had_gap {
            self.drop_passed_blocks();
        }
        Arrival::InOrder { is_gap_filled: had_gap && !self.has_gap() }
    }

    /// Makes the next ACK report that the segment has arrived again.
    pub fn report_duplicate(&mut self, seq: Seq) {
        self.duplicate = Some(one(seq));
    }

    /// Drops an unreported duplicate, because another segment has arrived.
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// Returns the blocks for an ACK.
    pub fn take_blocks(&mut self) -> SackList {
        let mut list = SackList::default();
        if let Some(duplicate) = self.duplicate.take() {
            list.push(duplicate);
        }
        self.blocks().iter().for_each(|block| list.push(*block));
        list
    }

    fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..self.block_count]
    }

    /// Stores a segment beyond a gap; returns whether it is new.
    fn hold(&mut self, data: &Data) -> bool {
        let (seq, len) = (data.seq.0, u64::from(data.len));
        let end_bytes = data.offset.0 + len;
        // The segment is nearly always beyond the last island, or continues it.
        let behind = match self.islands.back() {
            Some(last) if last.start <= seq => self.islands.len(),
            _ => self.islands.partition_point(|island| island.start <= seq),
        };
        if behind > 0 && seq < self.islands[behind - 1].end {
            return false;
        }
        self.held_bytes += len;
        let continues = behind > 0 && self.islands[behind - 1].end == seq;
        let precedes = self.islands.get(behind).is_some_and(|island| island.start == seq + 1);
        match (continues, precedes) {
            (true, true) => {
                let upper = self.islands.remove(behind).expect("it precedes an island");
                let lower = &mut self.islands[behind - 1];
                lower.end = upper.end;
                lower.end_bytes = upper.end_bytes;
                lower.bytes += len + upper.bytes;
            }
            (true, false) => {
                let lower = &mut self.islands[behind - 1];
                lower.end += 1;
                lower.end_bytes = end_bytes;
                lower.bytes += len;
            }
            (false, true) => {
                let upper = &mut self.islands[behind];
                upper.start = seq;
                upper.bytes += len;
            }
            (false, false) => {
                self.islands.insert(behind, Island { start: seq, end: seq + 1, end_bytes, bytes: len });
            }
        }
        true
    }

    /// Extends the block that `new` touches, or creates one, and moves it to the front.
    fn add_block(&mut self, new: SackBlock) {
        let count = self.block_count;
        let Some(place) = self.blocks().iter().position(|block| touches(block, new)) else {
            let kept = count.min(BLOCKS - 1);
            self.blocks.copy_within(0..kept, 1);
            self.blocks[0] = new;
            self.block_count = kept + 1;
            return;
        };
        let block = &mut self.blocks[place];
        block.start = block.start.min(new.start);
        block.end = block.end.max(new.end);
        self.blocks[..=place].rotate_right(1);
        // The extended block may touch another one.
        let first = self.blocks[0];
        if let Some(other) = (1..count).find(|at| touches(&self.blocks[*at], first)) {
            self.blocks[0].start = first.start.min(self.blocks[other].start);
            self.blocks[0].end = first.end.max(self.blocks[other].end);
            self.blocks.copy_within(other + 1..count, other);
            self.block_count -= 1;
        }
    }

    fn drop_passed_blocks(&mut self) {
        let mut kept = 0;
        for at in 0..self.block_count {
            if self.blocks[at].start.0 > self.next {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.block_count = kept;
    }
}

fn one(seq: Seq) -> SackBlock {
    SackBlock { start: seq, end: Seq(seq.0 + 1) }
}

fn touches(left: &SackBlock, right: SackBlock) -> bool {
    left.start <= right.end && right.start <= left.end
}
