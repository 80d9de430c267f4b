//! ECN state of the receiver. The module `marks` describes its feedback.

use thalweg_cc::EcnFeedback;

#[derive(Debug, Default)]
pub(super) struct EcnEcho {
    /// The feedback that both ends have negotiated; `None` if the connection is not ECN-capable.
    pub feedback: Option<EcnFeedback>,
    /// Whether ACKs carry the ECE flag.
    pub is_ece: bool,
    /// Number of segments received with a mark.
    pub ce_segments: u32,
    /// Whether an ECN-capable segment has arrived.
    pub is_seen: bool,
    /// Whether the latest ECN-capable segment was marked (DCTCP.CE).
    pub is_ce: bool,
    /// The left edge after the latest ECN-capable segment.
    pub next: u64,
    /// The same left edge, in bytes.
    pub next_bytes: u64,
}
