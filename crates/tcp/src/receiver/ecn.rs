//! The state of ECN at the receiver; what it reports is in the module `marks`.

use thalweg_cc::EcnFeedback;

/// The state of ECN.
#[derive(Debug, Default)]
pub(super) struct EcnEcho {
    /// The feedback that both ends have agreed on; none: the connection is not ECN-capable.
    pub feedback: Option<EcnFeedback>,
    /// Whether ACKs carry the ECE flag.
    pub is_ece: bool,
    /// Segments received with a mark.
    pub ce_segments: u32,
    /// Whether an ECN-capable segment has arrived.
    pub is_seen: bool,
    /// Whether the latest of them was marked (DCTCP.CE).
    pub is_ce: bool,
    /// The left edge when it arrived.
    pub next: u64,
    /// The same in bytes.
    pub next_bytes: u64,
}
