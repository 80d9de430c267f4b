//! The packets between the two endpoints.
//!
//! The stream is split into segments numbered from 0 ([`Seq`]); a segment never changes its number or length, so that a
//! retransmission carries the same bytes as the first transmission. Sizes on the wire are those of IPv4 and TCP with
//! timestamps and, if there are blocks, SACK.

use thalweg_units::{Bytes, Ecn, HEADER, Time};

/// Bytes of a SYN or SYN-ACK: 40 bytes of headers and 20 of options (MSS, SACK permitted, timestamps, window scale).
const SYN_SIZE: Bytes = Bytes(60);

/// Number of SACK blocks that fit next to the timestamp option: (40 - 12 - 4) / 8.
const SACK_BLOCKS: usize = 3;

/// Number of a segment of the stream, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// Value of a timestamp option (RFC 7323) in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u32);

impl Timestamp {
    /// Returns the value of the timestamp clock at `now`.
    pub fn at(now: Time) -> Timestamp {
        Timestamp(u32::try_from(now.0 / 1_000_000).unwrap_or(u32::MAX))
    }
}

/// A range of segments, from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment.
    pub start: Seq,
    /// First segment after the range.
    pub end: Seq,
}

/// A list of up to three SACK blocks, the most recently changed first. A D-SACK (RFC 2883) precedes the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackList {
    blocks: [SackBlock; SACK_BLOCKS],
    len: u8,
}

impl SackList {
    /// Appends a block, unless the list is full.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }

    /// Returns the blocks in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether the list has no blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The first packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Whether the SYN requests ECN.
    pub is_ecn: bool,
    /// The sender's timestamp.
    pub tsval: Timestamp,
}

/// The third packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// The sender's timestamp.
    pub tsval: Timestamp,
    /// Echoed timestamp: the receiver's latest.
    pub tsecr: Timestamp,
}

/// A segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of the segment.
    pub seq: Seq,
    /// Offset of the payload in the stream.
    pub offset: Bytes,
    /// Payload bytes, at least 1 and at most the MSS.
    pub len: u32,
    /// Whether the segment carries the PSH flag.
    pub is_push: bool,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Whether the segment carries the CWR flag (RFC 3168, section 6.1.2): the sender has reduced its window.
    pub is_cwr: bool,
    /// The sender's timestamp.
    pub tsval: Timestamp,
    /// Echoed timestamp: the receiver's latest.
    pub tsecr: Timestamp,
}

/// The second packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynAck {
    /// Receive window in bytes; not scaled, so at most 65535.
    pub window: Bytes,
    /// Whether the SYN-ACK accepts ECN.
    pub is_ecn: bool,
    /// The receiver's timestamp.
    pub tsval: Timestamp,
    /// Echoed timestamp of the first SYN that arrived.
    pub tsecr: Timestamp,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPacket {
    /// The left edge: all segments below it are acknowledged.
    pub next: Seq,
    /// Receive window in bytes, starting at `next`.
    pub window: Bytes,
    /// Whether the ACK carries the ECE flag (RFC 3168, section 6.1.3).
    pub is_ece: bool,
    /// Number of marked segments received so far, modulo 2^32; used only with accurate feedback (RFC 9768).
    pub ce_segments: u32,
    /// The receiver's timestamp.
    pub tsval: Timestamp,
    /// Echoed timestamp, chosen as in RFC 7323, section 4.3.
    pub tsecr: Timestamp,
    /// Blocks of segments received beyond `next`, preceded by a segment that has arrived twice, if there is one.
    pub sack: SackList,
}

/// A packet to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToReceiver {
    /// The first packet of the handshake.
    Syn(Syn),
    /// The third packet of the handshake.
    Established(Established),
    /// A segment with payload.
    Data(Data),
}

impl ToReceiver {
    /// Returns the ECN field of the IP header. Handshake packets are not ECN-capable (RFC 3168, section 6.1.1).
    pub fn ecn(&self) -> Ecn {
        match self {
            ToReceiver::Syn(_) | ToReceiver::Established(_) => Ecn::NotEct,
            ToReceiver::Data(data) => data.ecn,
        }
    }

    /// Sets the ECN field to CE if the packet carries data.
    pub fn mark_ce(&mut self) {
        if let ToReceiver::Data(data) = self {
            data.ecn = Ecn::Ce;
        }
    }

    /// Returns the size of the IP packet in bytes.
    pub fn wire_size(&self) -> Bytes {
        match self {
            ToReceiver::Syn(_) => SYN_SIZE,
            ToReceiver::Established(_) => HEADER,
            ToReceiver::Data(data) => Bytes(u64::from(data.len)) + HEADER,
        }
    }
}

/// A packet to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToSender {
    /// The second packet of the handshake.
    SynAck(SynAck),
    /// An acknowledgement.
    Ack(AckPacket),
}

impl ToSender {
    /// Whether a later acknowledgement supersedes this one: it has neither SACK blocks nor ECE.
    pub fn is_plain(&self) -> bool {
        matches!(self, ToSender::Ack(ack) if ack.sack.is_empty() && !ack.is_ece)
    }

    /// Returns the size of the IP packet in bytes.
    pub fn wire_size(&self) -> Bytes {
        match self {
            ToSender::SynAck(_) => SYN_SIZE,
            ToSender::Ack(ack) if ack.sack.is_empty() => HEADER,
            ToSender::Ack(ack) => HEADER + Bytes(4 + 8 * u64::from(ack.sack.len)),
        }
    }
}
