//! Receive offload (GRO) and interrupt coalescing: the processing of arriving packets by a network card and its driver.
//!
//! ```text
//!  arrivals        x  x x    x               x x
//!                  |<- interval ->|          |<- interval ->|
//!  handled                        xxxx                      xx
//! ```
//!
//! The first packet after an interrupt starts a timer; when it expires, the host handles all packets that have arrived
//! until then. With an interval of zero it handles packets that arrive at the same instant together. With receive
//! offload, consecutive segments of a connection among these become one packet of at most 64 KiB, for which the
//! receiver decides once whether to acknowledge. Acknowledgements without data are not merged.
//!
//! A router with receive offload merges segments that a host sends at the same instant. It queues, drops and sends
//! merged packets as one, as in a Linux router, whose card splits them after the queue. A merged packet departs with
//! its first segment, and occupies the link for the time of all segments: htb passes it to the card in one piece.
//!
//! Not modelled: adaptive intervals, limits of a poll (`NAPI` budget), timeouts of held packets (`gro_flush_timeout`),
//! and the rate of the links between hosts and bottleneck.
//!
//! Source: Linux `net/core/gro.c`, `net/ipv4/tcp_offload.c`; ethtool(8), `rx-usecs`.

use crate::calendar::Alarm;
use crate::packet::Packet;
use std::collections::VecDeque;
use thalweg_plan::plan;
use thalweg_tcp::{Data, ToReceiver};
use thalweg_units::{Bytes, HEADER, Span};

/// Maximum size of a merged packet, including one set of headers: GRO_LEGACY_MAX_SIZE.
const MERGED_MAX: Bytes = Bytes(65_536);

/// The receive side of a host's network card.
#[derive(Debug)]
pub(crate) struct Card {
    merges: bool,
    mss: Bytes,
    pub(crate) interval: Span,
    pub(crate) arrivals: VecDeque<Box<Packet>>,
    pub(crate) alarm: Alarm,
}

impl Card {
    /// Creates the card of a host; `None` if the host handles each packet as it arrives. `may_be_merged`: a router
    /// merges packets.
    pub(crate) fn new(host: &plan::Host, may_be_merged: bool, mss: Bytes) -> Option<Card> {
        let (merges, interval) = (host.offloads, host.interrupt_coalescing_ns);
        let is_needed = merges || interval > Span::ZERO || may_be_merged;
        is_needed.then(|| Card { merges, mss, interval, arrivals: VecDeque::new(), alarm: Alarm::default() })
    }

    /// Removes and returns the collected packets. Those that a router merged are split first; with receive offload,
    /// segments are then merged.
    pub(crate) fn take(&mut self) -> VecDeque<Box<Packet>> {
        let mut packets = VecDeque::new();
        for packet in std::mem::take(&mut self.arrivals) {
            match *packet {
                Packet::Merged { connection, segments } => {
                    for data in segments {
                        let segment = Packet::Data { connection, packet: ToReceiver::Data(data) };
                        self.add(Box::new(segment), &mut packets);
                    }
                }
                _ => self.add(packet, &mut packets),
            }
        }
        packets
    }

    /// Adds a packet to those that the host handles now, merging it with the latest one of its connection if possible.
    fn add(&self, packet: Box<Packet>, packets: &mut VecDeque<Box<Packet>>) {
        let connection = packet.connection();
        let latest = packets.iter_mut().rev().find(|it| self.merges && it.connection() == connection);
        if !latest.is_some_and(|latest| merge(latest, &packet, self.mss)) {
            packets.push_back(packet);
        }
    }
}

/// Adds a segment to a packet if receive offload merges them. Returns whether it did.
pub(crate) fn merge(packet: &mut Packet, next: &Packet, mss: Bytes) -> bool {
    let Packet::Data { connection, packet: ToReceiver::Data(next) } = next else { return false };
    match packet {
        Packet::Data { connection: own, packet: ToReceiver::Data(last) }
            if own == connection && continues(last, next, mss) =>
        {
            *packet = Packet::Merged { connection: *connection, segments: vec![*last, *next] };
            true
        }
        Packet::Merged { connection: own, segments } if own == connection => {
            let size = HEADER + Bytes(segments.len() as u64 * mss.0 + u64::from(next.len));
            let fits = size <= MERGED_MAX && segments.last().is_some_and(|last| continues(last, next, mss));
            if fits {
                segments.push(*next);
            }
            fits
        }
        _ => false,
    }
}

fn continues(last: &Data, next: &Data, mss: Bytes) -> bool {
    !last.is_push
        && u64::from(last.len) == mss.0
        && next.seq.0 == last.seq.0 + 1
        && (next.tsval, next.tsecr) == (last.tsval, last.tsecr)
        && next.ecn == last.ecn
        && !next.is_cwr
}
