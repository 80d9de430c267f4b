//! The sinks of rows.

use crate::tables::{FlowRow, PacketRow, QueueRow, SampleRow, StateRow};

/// Takes the rows of one experiment. They may arrive in any order; from a deterministic engine, always in the same one.
pub trait Sink {
    /// A transfer has ended.
    fn flow(&mut self, row: FlowRow);
    /// A connection was sampled.
    fn sample(&mut self, row: SampleRow);
    /// An internal value of an algorithm was sampled.
    fn state(&mut self, row: StateRow);
    /// A link was sampled.
    fn queue(&mut self, row: QueueRow);
    /// A packet was offered to a link.
    fn packet(&mut self, row: PacketRow);
}

/// Keeps every row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Transfers.
    pub flows: Vec<FlowRow>,
    /// Samples of connections.
    pub samples: Vec<SampleRow>,
    /// Internal values of algorithms.
    pub state: Vec<StateRow>,
    /// Samples of links.
    pub queue: Vec<QueueRow>,
    /// Packets offered to links.
    pub packets: Vec<PacketRow>,
}

impl Sink for Memory {
    fn flow(&mut self, row: FlowRow) {
        self.flows.push(row);
    }
    fn sample(&mut self, row: SampleRow) {
        self.samples.push(row);
    }
    fn state(&mut self, row: StateRow) {
        self.state.push(row);
    }
    fn queue(&mut self, row: QueueRow) {
        self.queue.push(row);
    }
    fn packet(&mut self, row: PacketRow) {
        self.packets.push(row);
    }
}

/// Drops every row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Sink for Nothing {
    fn flow(&mut self, _: FlowRow) {}
    fn sample(&mut self, _: SampleRow) {}
    fn state(&mut self, _: StateRow) {}
    fn queue(&mut self, _: QueueRow) {}
    fn packet(&mut self, _: PacketRow) {}
}
