//! Packets in the relay, in reusable buffers.
//!
//! A buffer has the format of an AF_PACKET socket with PACKET_VNET_HDR: the kernel's offload header, the Ethernet
//! header and the IP packet.

use super::header;
use crate::packet_socket::OFFLOAD_HEADER;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use thalweg_units::{Bytes, Ecn};

/// Length of the Ethernet header in bytes; the interfaces have no VLAN tags.
pub(super) const ETHERNET_HEADER: usize = 14;
/// Offset of the IP packet in a buffer.
pub(super) const IP: usize = OFFLOAD_HEADER + ETHERNET_HEADER;
/// Capacity of a small buffer in bytes, for segmented packets.
const SMALL: usize = 2048;
/// Capacity of a large buffer in bytes, for an IP packet of 65535 bytes.
const LARGE: usize = IP + 65_535;

pub(super) struct Packet {
    buffer: Box<[u8]>,
    len: usize,
    /// Index of the sender's port from or to which the packet goes.
    pub port: usize,
    pool: Rc<Pool>,
}

/// Pool of unused buffers.
#[derive(Debug, Default)]
pub(super) struct Pool {
    small: RefCell<Vec<Box<[u8]>>>,
    large: RefCell<Vec<Box<[u8]>>>,
}

impl Pool {
    /// Creates a pool with this number of small buffers.
    pub fn filled(small: usize) -> Rc<Pool> {
        let buffers = (0..small).map(|_| vec![0; SMALL].into_boxed_slice()).collect();
        Rc::new(Pool { small: RefCell::new(buffers), large: RefCell::default() })
    }

    /// Returns a packet with `len` bytes, including all headers; its content is unspecified.
    ///
    /// # Panics
    /// If the IP packet would exceed 65535 bytes.
    pub fn packet(self: &Rc<Pool>, len: usize, port: usize) -> Packet {
        assert!(len <= LARGE, "{len} bytes are too many for a packet");
        let (buffers, room) = if len <= SMALL { (&self.small, SMALL) } else { (&self.large, LARGE) };
        let buffer = buffers.borrow_mut().pop().unwrap_or_else(|| vec![0; room].into_boxed_slice());
        Packet { buffer, len, port, pool: Rc::clone(self) }
    }

    fn take_back(&self, buffer: Box<[u8]>) {
        let buffers = if buffer.len() == SMALL { &self.small } else { &self.large };
        buffers.borrow_mut().push(buffer);
    }
}

impl Packet {
    /// Returns the bytes, including headers.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Returns the bytes for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// Returns the IP packet.
    pub fn ip(&self) -> &[u8] {
        &self.bytes()[IP..]
    }

    /// Returns the size of the IP packet.
    pub fn size(&self) -> Bytes {
        Bytes((self.len - IP) as u64)
    }
}

impl thalweg_link::Packet for Packet {
    fn flow(&self) -> u64 {
        header::flow(self.ip())
    }

    fn ecn(&self) -> Ecn {
        header::ecn(self.ip())
    }

    fn is_ack(&self) -> bool {
        header::acknowledgement(self.ip()).is_some()
    }

    fn is_plain_ack(&self) -> bool {
        header::acknowledgement(self.ip()) == Some(header::Acknowledgement::Plain)
    }

    fn mark_ce(&mut self) {
        header::mark_ce(&mut self.bytes_mut()[IP..]);
    }
}

impl Clone for Packet {
    fn clone(&self) -> Packet {
        let mut copy = self.pool.packet(self.len, self.port);
        copy.bytes_mut().copy_from_slice(self.bytes());
        copy
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.buffer));
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "packet of {}, port {}", self.size(), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_reused_by_the_next_packet_of_its_size_class() {
        let pool = Pool::filled(0);
        let mut first = pool.packet(IP + 1500, 0);
        first.bytes_mut().fill(7);
        drop(first);
        drop(pool.packet(IP + 60_000, 0));
        assert!(pool.packet(IP + 40, 3).bytes().iter().all(|byte| *byte == 7));
        assert_eq!((pool.small.borrow().len(), pool.large.borrow().len()), (1, 1));
    }

    #[test]
    fn a_copy_outlives_its_original() {
        let pool = Pool::filled(1);
        let mut original = pool.packet(IP + 100, 2);
        original.bytes_mut().fill(1);
        let copy = original.clone();
        drop(original);
        pool.packet(IP + 100, 0).bytes_mut().fill(9);
        assert_eq!((copy.size(), copy.port), (Bytes(100), 2));
        assert!(copy.ip().iter().all(|byte| *byte == 1));
    }
}
