//! First in, first out, drop tail.
//!
//! A packet that would exceed the buffer is dropped; smaller packets after it may still fit. A limit in bytes counts
//! the sizes of IP packets, a limit in packets counts packets of any size. Neither includes the packet being sent.

use super::item::Item;
use std::collections::VecDeque;
use thalweg_plan::plan::Buffer;
use thalweg_units::{Bytes, Packets};

/// A drop-tail queue.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    items: VecDeque<Item<P>>,
    bytes: Bytes,
    limit: Buffer,
}

impl<P> Fifo<P> {
    pub fn new(limit: Buffer) -> Fifo<P> {
        Fifo { items: VecDeque::new(), bytes: Bytes::ZERO, limit }
    }

    /// Creates a queue without a limit; its owner applies one.
    pub fn unlimited() -> Fifo<P> {
        Fifo::new(Buffer::Packets { packets: Packets::MAX })
    }

    /// Whether a packet of this size fits.
    pub fn has_capacity(&self, size: Bytes) -> bool {
        match self.limit {
            Buffer::Bytes { bytes } => self.bytes + size <= bytes,
            Buffer::Packets { packets } => self.packets() < packets,
        }
    }

    /// Appends the item if it fits. Returns whether it did.
    pub fn push(&mut self, item: Item<P>) -> bool {
        let fits = self.has_capacity(item.size);
        if fits {
            self.bytes += item.size;
            self.items.push_back(item);
        }
        fits
    }

    /// Removes and returns the next item to send.
    pub fn pop(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes -= item.size;
        Some(item)
    }

    /// Returns the next item to send.
    pub fn front(&self) -> Option<&Item<P>> {
        self.items.front()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn packets(&self) -> Packets {
        Packets(self.items.len() as u64)
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
