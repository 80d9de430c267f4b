//! The outcome of a closed connection.

use crate::arm::ArmId;
use crate::prefix::Prefix;
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, Packets, Rate, Span};

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The peer opened the connection.
    #[default]
    In,
    /// This host opened the connection.
    Out,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Direction; 2] = [Direction::In, Direction::Out];
}

/// Size class of a connection: short and long ones have different objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A small transfer.
    Short,
    /// A medium transfer.
    Medium,
    /// A long transfer, for which throughput matters.
    Long,
}

impl Size {
    /// All classes, in ascending order.
    pub const ALL: [Size; 3] = [Size::Short, Size::Medium, Size::Long];
}

/// Class of a connection that opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// The side that opens the connection.
    pub direction: Direction,
    /// The expected size, if known.
    pub size: Option<Size>,
}

/// Role of a connection in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The algorithm was drawn from the policy's weights.
    Treated,
    /// Held out: the connection kept the system's default, for comparison.
    HeldOut,
    /// Not part of the comparison: the policy did not choose the final algorithm, or the connection depends on another
    /// one.
    Untouched,
}

/// The outcome of a closed connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The destination.
    pub prefix: Prefix,
    /// Algorithm when the connection closed.
    pub arm: ArmId,
    /// Role in the comparison.
    pub group: Group,
    /// The side that opened the connection.
    pub direction: Direction,
    /// Acknowledged payload.
    pub acked: Bytes,
    /// Time from the first byte queued to the last one acknowledged, if the connection carried a single transfer whose
    /// rate the network determined.
    pub completion: Option<Span>,
    /// Time during which data was unacknowledged; 0 if unknown.
    pub busy: Span,
    /// Whether the application limited the connection most of the time.
    pub is_app_limited: bool,
    /// Whether a shortage of CPU limited the connection; false if unknown.
    pub is_cpu_limited: bool,
    /// Data segments sent, including retransmissions.
    pub segments: Packets,
    /// Data segments that were retransmissions.
    pub retransmits: Packets,
    /// Smallest round-trip time; `None` without a sample.
    pub rtt_min: Option<Span>,
    /// Largest round-trip time.
    pub rtt_max: Option<Span>,
    /// Largest delivery rate that was not application-limited; without one, the latest.
    pub delivery_rate: Option<Rate>,
}

impl Outcome {
    /// Returns the ratio of retransmissions to segments sent, from 0 to 1.
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
    /// Current algorithm.
    pub arm: ArmId,
    /// Segments sent so far, including retransmissions and segments without payload.
    pub segments_out: Packets,
    /// Retransmissions so far.
    pub retransmits: Packets,
}
