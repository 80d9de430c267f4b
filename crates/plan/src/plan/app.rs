//! Applications as a plan has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, Rate, Span};

/// An application that decides on the sizes and times of transfers on its connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum App {
    /// Adaptive video over one connection: segments at bitrates that follow from the playback buffer.
    Video {
        /// Available bitrates, in ascending order; at least one.
        bitrates_bps: Vec<Rate>,
        /// Playing time of a segment.
        segment_ns: Span,
        /// Capacity of the playback buffer in playing time; at least two segments.
        buffer_ns: Span,
    },
    /// Pages whose objects depend on one another, over several connections.
    Web {
        /// Objects of a page; the first is the document.
        objects: u32,
        /// Length of the longest chain of objects, each of which is found in the previous one.
        depth: u32,
        /// Sizes of the objects, with equal probability.
        sizes_bytes: Vec<Bytes>,
        /// Maximum number of connections, which carry one object at a time each.
        connections: u32,
        /// Number of consecutive pages.
        pages: u32,
        /// Time from the last object of a page to the start of the next page.
        think_ns: Span,
    },
    /// A video call: a frame in every interval on one connection, whether or not earlier ones have arrived.
    Call {
        /// Size of each frame.
        frame_bytes: Bytes,
        /// Time between frames.
        interval_ns: Span,
        /// A gap between the arrivals of two frames is a freeze if it exceeds three intervals, and one interval by more
        /// than this.
        freeze_ns: Span,
    },
    /// Remote procedure calls that arrive at random, whether or not earlier ones have finished.
    Rpc {
        /// Mean of the exponentially distributed gap between arrivals.
        mean_gap_ns: Span,
        /// Sizes of the messages, with equal probability.
        sizes_bytes: Vec<Bytes>,
        /// Number of connections, which carry messages in rotation.
        connections: u32,
    },
    /// A small message at a regular interval on one connection.
    Probe {
        /// Size of each message.
        size_bytes: Bytes,
        /// Time between messages.
        interval_ns: Span,
    },
}

impl App {
    /// Name, as in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            App::Video { .. } => "video",
            App::Web { .. } => "web",
            App::Call { .. } => "call",
            App::Rpc { .. } => "rpc",
            App::Probe { .. } => "probe",
        }
    }

    /// Whether it continues until its flow stops.
    pub fn is_endless(&self) -> bool {
        !matches!(self, App::Web { .. })
    }

    /// Whether it would send nothing, send without a pause, or has parameters that contradict one another.
    pub fn is_invalid(&self) -> bool {
        let is_empty = |sizes: &[Bytes]| sizes.is_empty() || sizes.contains(&Bytes::ZERO);
        match self {
            App::Video { bitrates_bps, segment_ns, buffer_ns } => {
                let is_sorted = bitrates_bps.windows(2).all(|pair| pair[0] < pair[1]);
                let smallest = bitrates_bps.first().map_or(Bytes::ZERO, |rate| segment_bytes(*rate, *segment_ns));
                !is_sorted || smallest == Bytes::ZERO || *buffer_ns < segment_ns.scale(2, 1)
            }
            App::Web { objects, depth, sizes_bytes, connections, pages, .. } => {
                [*objects, *depth, *connections, *pages].contains(&0) || depth > objects || is_empty(sizes_bytes)
            }
            App::Call { frame_bytes, interval_ns, .. } => *frame_bytes == Bytes::ZERO || *interval_ns == Span::ZERO,
            App::Rpc { mean_gap_ns, sizes_bytes, connections } => {
                *mean_gap_ns == Span::ZERO || *connections == 0 || is_empty(sizes_bytes)
            }
            App::Probe { size_bytes, interval_ns } => *size_bytes == Bytes::ZERO || *interval_ns == Span::ZERO,
        }
    }
}

/// Size of a video segment, rounded down.
pub fn segment_bytes(bitrate: Rate, segment: Span) -> Bytes {
    let bits = u128::from(bitrate.0) * u128::from(segment.0) / 1_000_000_000;
    Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
}
