//! The packets between the two endpoints.
//!
//! The stream is cut into segments numbered from 0 ([`Seq`]); a segment never changes its number or length, so that a
//! retransmission carries the same bytes as the first transmission. Packets are small and `Copy`. Their size on the
//! wire is that of IPv4 and TCP with the options that Linux sends: timestamps on every segment, SACK if there is
//! anything to report.

use thalweg_units::{Bytes, Ecn, HEADER, Time};

/// Bytes of a SYN or SYN-ACK: 40 bytes of headers and 20 of options (MSS, SACK permitted, timestamps, window scale).
const SYN_SIZE: Bytes = Bytes(60);

/// SACK blocks that fit beside the timestamp option: (40 - 12 - 4) / 8.
const SACK_BLOCKS: usize = 3;

/// Number of a segment of the stream, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// Value of a timestamp option (RFC 7323): milliseconds, as in Linux. It holds 49 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u32);

impl Timestamp {
    /// The timestamp clock at `now`.
    pub fn at(now: Time) -> Timestamp {
        Timestamp(u32::try_from(now.0 / 1_000_000).unwrap_or(u32::MAX))
    }
}

/// The segments from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment.
    pub start: Seq,
    /// First segment behind it.
    pub end: Seq,
}

/// Up to three SACK blocks, the most recently changed first; a D-SACK (RFC 2883) comes before the others.
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

    /// The blocks in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// First packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syn {
    /// Whether it requests ECN: the flags ECE and CWR (RFC 3168, section 6.1.1).
    pub is_ecn: bool,
    /// The sender's timestamp.
    pub tsval: Timestamp,
}

/// Third packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// The sender's timestamp.
    pub tsval: Timestamp,
    /// Timestamp of the packet that this one answers.
    pub tsecr: Timestamp,
}

/// A segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of the segment.
    pub seq: Seq,
    /// Offset of its payload in the stream.
    pub offset: Bytes,
    /// Payload bytes, at least 1 and at most the MSS.
    pub len: u32,
    /// Whether it carries the PSH flag: it is the last one of a burst, or of a write.
    pub is_push: bool,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Whether it carries the CWR flag (RFC 3168, section 6.1.2): the sender has reduced its window.
    pub is_cwr: bool,
    /// The sender's timestamp.
    pub tsval: Timestamp,
    /// The receiver's latest timestamp.
    pub tsecr: Timestamp,
}

/// Second packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynAck {
    /// Receive window in bytes; not scaled, so at most 65535.
    pub window: Bytes,
    /// Whether it agrees to ECN: the flag ECE without CWR.
    pub is_ecn: bool,
    /// The receiver's timestamp.
    pub tsval: Timestamp,
    /// Timestamp of the SYN that this one answers.
    pub tsecr: Timestamp,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPacket {
    /// First segment that the receiver does not have.
    pub next: Seq,
    /// Receive window in bytes from there on.
    pub window: Bytes,
    /// Whether it carries the ECE flag (RFC 3168, section 6.1.3): the receiver reports a mark.
    pub is_ece: bool,
    /// Marked segments received so far, modulo 2^32: what the fields of RFC 9768 convey.
    pub ce_segments: u32,
    /// The receiver's timestamp.
    pub tsval: Timestamp,
    /// Timestamp of the segment that last moved the left edge (RFC 7323, section 4.3).
    pub tsecr: Timestamp,
    /// The segments that the receiver has beyond `next`, and those that it received twice.
    pub sack: SackList,
}

/// A packet to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToReceiver {
    /// First packet of the handshake.
    Syn(Syn),
    /// Third packet of the handshake.
    Established(Established),
    /// A segment with payload.
    Data(Data),
}

impl ToReceiver {
    /// The ECN field of its IP header; handshakes are not ECN-capable (RFC 3168, section 6.1.1).
    pub fn ecn(&self) -> Ecn {
        match self {
            ToReceiver::Syn(_) | ToReceiver::Established(_) => Ecn::NotEct,
            ToReceiver::Data(data) => data.ecn,
        }
    }

    /// Sets the ECN field of a segment to CE.
    pub fn mark_ce(&mut self) {
        if let ToReceiver::Data(data) = self {
            data.ecn = Ecn::Ce;
        }
    }

    /// Bytes of the IP packet.
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
    /// Second packet of the handshake.
    SynAck(SynAck),
    /// An acknowledgement.
    Ack(AckPacket),
}

impl ToSender {
    /// Whether a later acknowledgement replaces it: it reports only the next segment.
    pub fn is_plain(&self) -> bool {
        matches!(self, ToSender::Ack(ack) if ack.sack.is_empty() && !ack.is_ece)
    }

    /// Bytes of the IP packet.
    pub fn wire_size(&self) -> Bytes {
        match self {
            ToSender::SynAck(_) => SYN_SIZE,
            ToSender::Ack(ack) if ack.sack.is_empty() => HEADER,
            ToSender::Ack(ack) => HEADER + Bytes(4 + 8 * u64::from(ack.sack.len)),
        }
    }
}
