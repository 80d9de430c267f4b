//! The capture: every packet offered to a link, and its outcome.
//!
//! The file is pcapng (draft-ietf-opsawg-pcapng), which tcpdump and Wireshark read. It has one section with an
//! interface for each outcome in each direction (`forward queued`, `forward dropped`, …), link type IPV4 or IPV6, and
//! times in nanoseconds since the experiment's start. Packets are truncated. The comment of a packet has its number in
//! its direction and the bytes in the queue after it: `number 17, backlog 12345`. A packet that the link duplicated is
//! stored once.

mod pcapng;
mod read;
mod recorder;

pub use read::read;
pub(crate) use read::read_from;
pub(super) use recorder::Recorder;

use thalweg_link::Sent;
use thalweg_units::{Bytes, Time};

/// A packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Whether the packet went from sender to receiver.
    pub is_forward: bool,
    /// Time at which the packet was offered to the link.
    pub t: Time,
    /// Number in its direction, from 0.
    pub number: u64,
    /// Outcome: `queued`, `dropped`, `lost` or `policed`.
    pub fate: &'static str,
    /// Size of the packet, including the IP header.
    pub size_bytes: Bytes,
    /// Bytes in the queue after the packet was offered, without the packet in transmission.
    pub backlog_bytes: Bytes,
}

/// The outcomes, in the order of the interfaces of a direction.
const FATES: [&str; 4] = ["queued", "dropped", "lost", "policed"];

/// Returns the name of an outcome.
pub(super) fn fate(sent: Sent) -> &'static str {
    match sent {
        Sent::Queued => FATES[0],
        Sent::Dropped => FATES[1],
        Sent::Lost => FATES[2],
        Sent::Policed => FATES[3],
    }
}
