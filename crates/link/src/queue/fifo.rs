//! First in, first out, drop tail.
//!
//! A packet that would exceed the buffer is dropped, whole; smaller ones behind it may still fit. A limit in bytes
//! counts IP packets, a limit in packets counts them whatever their size, and neither counts the packet being sent.

use super::item::Item;
use std::collections::VecDeque;
use thalweg_plan::plan::Buffer;
use thalweg_units::{Bytes, Packets};

/// A queue without decisions other than the limit.
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

    /// A queue whose owner applies the limit.
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

    /// Appends the item and returns `true`, unless it does not fit.
    pub fn push(&mut self, item: Item<P>) -> bool {
        let fits = self.has_capacity(item.size);
        if fits {
            self.bytes += item.size;
            self.items.push_back(item);
        }
        fits
    }

    /// Removes the item that is to be sent next.
    pub fn pop(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes -= item.size;
        Some(item)
    }

    /// The item that is to be sent next.
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
