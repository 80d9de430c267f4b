//! The outcome of a closed connection.

use crate::arm::ArmId;
use crate::prefix::Prefix;
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, Packets, Rate, Span};

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The peer.
    #[default]
    In,
    /// This host.
    Out,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::In, Direction::Out];
}

/// Size class of a connection: short and long ones have different objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A page.
    Short,
    /// A picture, or a piece of video.
    Medium,
    /// A download: its throughput matters.
    Long,
}

impl Size {
    /// All, the shortest first.
    pub const ALL: [Size; 3] = [Size::Short, Size::Medium, Size::Long];
}

/// Class of connections that are compared with each other. When one opens, its direction is known and its size usually
/// is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// The side that opens it.
    pub direction: Direction,
    /// The expected size, if known from its port or from the application.
    pub size: Option<Size>,
}

/// How an arm was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Drawn from the policy's weights.
    Treated,
    /// Held out: it has kept the system's default, for comparison with the others.
    HeldOut,
    /// The application, a route or the administrator chose the algorithm. The connection is counted, but not learned
    /// from, because the reason of that choice is unknown.
    Untouched,
}

/// The outcome of a closed connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The destination, as returned by [`Tree::leaf`](crate::Tree::leaf).
    pub prefix: Prefix,
    /// Algorithm at the end, as read back from the kernel.
    pub arm: ArmId,
    /// How it was chosen.
    pub group: Group,
    /// The side that opened it.
    pub direction: Direction,
    /// Payload that was acknowledged.
    pub acked: Bytes,
    /// Time from the first byte queued to the last one acknowledged, if it was one transfer.
    pub completion: Option<Span>,
    /// Time with unacknowledged data.
    pub busy: Span,
    /// Whether the application limited it for most of that time.
    pub is_app_limited: bool,
    /// Whether the host was short of CPU meanwhile.
    pub is_cpu_limited: bool,
    /// Data segments sent, retransmissions included.
    pub segments: Packets,
    /// Data segments that were retransmissions.
    pub retransmits: Packets,
    /// Smallest round-trip time; none: there was no sample.
    pub rtt_min: Option<Span>,
    /// Largest round-trip time.
    pub rtt_max: Option<Span>,
    /// Delivery rate at the end, or the largest that the application did not limit.
    pub delivery_rate: Option<Rate>,
}

impl Outcome {
    /// Retransmissions over segments sent, from 0 to 1.
    pub fn retransmit_ratio(&self) -> f64 {
        if self.segments.0 == 0 {
            return 0.0;
        }
        self.retransmits.0.min(self.segments.0) as f64 / self.segments.0 as f64
    }
}

/// State of an open connection that has just retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The destination.
    pub prefix: Prefix,
    /// Algorithm.
    pub arm: ArmId,
    /// Segments sent so far, retransmissions and those without payload included.
    pub segments_out: Packets,
    /// Retransmissions so far.
    pub retransmits: Packets,
}
