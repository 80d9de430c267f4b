//! Counters of all disciplines, and the conversion of their limit.

use super::item::Item;
use crate::packet::Packet;
use crate::record::{DropCause, Fate};
use thalweg_plan::plan::Buffer;
use thalweg_units::{MTU, Packets};

/// Packets that a discipline has dropped and marked so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Packets dropped by the discipline, at its limit or below it.
    pub dropped: Packets,
    /// Packets dropped by the discipline's decision below the limit; included in `dropped`.
    pub early: Packets,
    /// Packets marked CE.
    pub marked: Packets,
    /// Fates of packets, by number, since the log was last read; `None` if they are not recorded.
    pub log: Option<Vec<(u32, Fate)>>,
}

impl Tally {
    /// Counts a packet that exceeded the limit.
    pub fn drop_at_limit(&mut self, number: u32) {
        self.dropped += Packets(1);
        self.record(number, Fate::Dropped(DropCause::Full));
    }

    /// Counts a packet that the discipline decided to drop.
    pub fn drop_early(&mut self, number: u32) {
        self.dropped += Packets(1);
        self.early += Packets(1);
        self.record(number, Fate::Dropped(DropCause::Early));
    }

    /// Records the outcome of a packet.
    #[inline]
    pub fn record(&mut self, number: u32, fate: Fate) {
        if let Some(log) = &mut self.log {
            log.push((number, fate));
        }
    }

    /// Marks and counts the packet if it is ECN-capable. Returns whether it is.
    pub fn try_mark<P: Packet>(&mut self, item: &mut Item<P>) -> bool {
        let is_marked = item.try_mark();
        self.marked += Packets(u64::from(is_marked));
        is_marked
    }
}

/// Returns a limit in packets; converts bytes to full-sized packets, at least one.
pub(crate) fn limit_packets(buffer: Buffer) -> Packets {
    match buffer {
        Buffer::Packets { packets } => packets,
        Buffer::Bytes { bytes } => Packets((bytes.0 / MTU.0).max(1)),
    }
}
