//! The capture: every packet offered to a link, and its outcome.
//!
//! The file is pcapng (draft-ietf-opsawg-pcapng), which tcpdump and Wireshark read. It has one section with six
//! interfaces, one for each fate in each direction (`forward queued`, `forward dropped`, …), link type IPV4, times in
//! nanoseconds since the experiment's start. A packet is stored up to 128 bytes; its comment has its number in its
//! direction and the bytes in the queue after it: `number 17, backlog 12345`. A packet that the link duplicated is
//! stored once.
//!
//! [`Recorder`] takes packets from the relay without making it wait: a separate thread writes them.

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
    /// Whether it went from sender to receiver.
    pub is_forward: bool,
    /// Time at which it was offered.
    pub t: Time,
    /// Number in its direction, from 0.
    pub number: u64,
    /// Outcome: `queued`, `dropped`, `lost` or `policed`, as in the table `packets`.
    pub fate: &'static str,
    /// Size, IP header included.
    pub size_bytes: Bytes,
    /// Bytes in the queue after it, the packet being sent not counted.
    pub backlog_bytes: Bytes,
}

/// The fates, in the order of the interfaces of a direction.
const FATES: [&str; 4] = ["queued", "dropped", "lost", "policed"];

/// The name of an outcome.
pub(super) fn fate(sent: Sent) -> &'static str {
    match sent {
        Sent::Queued => FATES[0],
        Sent::Dropped => FATES[1],
        Sent::Lost => FATES[2],
        Sent::Policed => FATES[3],
    }
}
