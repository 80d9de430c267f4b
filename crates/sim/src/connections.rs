//! All connections by id, with a flag for those that may have changed since their last sample.

use crate::connection::Connection;
use crate::packet::Packet;
use crate::prefetch::prefetch;
use std::ops::{Index, IndexMut};

/// Every connection ever opened. Closed connections leave `None`, so late packets are discarded.
///
/// Mutable access marks a connection as touched. One that is not touched between two samples has the same values at
/// both: a connection's state changes with its events, not with time.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    is_touched: Vec<bool>,
}

impl Connections {
    /// Returns the id of the next connection.
    pub(crate) fn next_id(&self) -> usize {
        self.slots.len()
    }

    /// Adds a connection and marks it as touched.
    pub(crate) fn push(&mut self, connection: Connection) {
        self.slots.push(Some(Box::new(connection)));
        self.is_touched.push(true);
    }

    /// Prefetches the endpoint that receives `packet`, unless that is merged.
    #[inline]
    pub(crate) fn expect(&self, packet: Option<&Packet>) {
        match packet {
            Some(Packet::Data { connection, .. }) => {
                if let Some(connection) = &self.slots[*connection] {
                    prefetch(&connection.receiver);
                }
            }
            Some(Packet::Ack { connection, .. }) => {
                if let Some(connection) = &self.slots[*connection] {
                    prefetch(&connection.sender);
                }
            }
            _ => {}
        }
    }

    /// Returns an open connection if it was touched since this was last called for it.
    pub(crate) fn take_touched(&mut self, id: usize) -> Option<&mut Connection> {
        std::mem::take(&mut self.is_touched[id]).then(|| self.slots[id].as_deref_mut()).flatten()
    }
}

impl Index<usize> for Connections {
    type Output = Option<Box<Connection>>;

    #[inline]
    fn index(&self, id: usize) -> &Option<Box<Connection>> {
        &self.slots[id]
    }
}

impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, id: usize) -> &mut Option<Box<Connection>> {
        self.is_touched[id] = true;
        &mut self.slots[id]
    }
}
