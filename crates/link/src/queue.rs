//! The queue: first in, first out, drop tail.
//!
//! A packet that would exceed the buffer is dropped, whole; smaller ones behind it may still fit. A limit in bytes counts
//! IP packets, a limit in packets counts them whatever their size, and neither counts the packet being sent.
//!
//! Another discipline goes beside this one and is chosen in `Link::new`. It needs what [`Fifo`] has (`push` at a packet's
//! arrival, `pop` when the capacity is free, the backlog) and, for sojourn times, the time in both calls.

use std::collections::VecDeque;
use thalweg_plan::plan::Buffer;
use thalweg_units::{Bytes, Packets, Span};

/// A packet on its way, with what was decided about it when it was offered.
#[derive(Debug)]
pub(crate) struct Item<P> {
    pub packet: P,
    pub size: Bytes,
    /// Added to the propagation delay, within the order of packets.
    pub jitter: Span,
    /// Added after that, out of order: of the flow, or because the packet is held back.
    pub offset: Span,
}

/// A queue without a policy of its own.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    items: VecDeque<Item<P>>,
    bytes: Bytes,
    room: Buffer,
}

impl<P> Fifo<P> {
    pub fn new(room: Buffer) -> Fifo<P> {
        Fifo { items: VecDeque::new(), bytes: Bytes::ZERO, room }
    }

    /// Takes the item and says so, unless it has no room for it.
    pub fn push(&mut self, item: Item<P>) -> bool {
        let has_room = match self.room {
            Buffer::Bytes { bytes } => self.bytes + item.size <= bytes,
            Buffer::Packets { packets } => self.packets() < packets,
        };
        if has_room {
            self.bytes += item.size;
            self.items.push_back(item);
        }
        has_room
    }

    /// The item that is to be sent next.
    pub fn pop(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes -= item.size;
        Some(item)
    }

    pub fn packets(&self) -> Packets {
        Packets(self.items.len() as u64)
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
