//! The transmissions that the latest event allows, and their progress.

#[derive(Debug, Default)]
pub(super) struct Work {
    /// Whether to send a SYN.
    pub syn: bool,
    /// Whether to send the third packet of the handshake.
    pub established: bool,
    /// Whether to retransmit the first segment, after a timeout.
    pub head: bool,
    /// Whether to send a loss probe.
    pub probe: bool,
    /// Which segments may be retransmitted.
    pub rexmit: Rexmit,
    /// Which new segments may be sent.
    pub push: Push,
    /// Whether an ACK may have freed memory that the application waits for.
    pub is_space_due: bool,
    /// Whether to check if cwnd is the limit even without new data to send.
    pub is_stock_due: bool,
    /// Whether the first outstanding segment is among those retransmitted since [`Rexmit::Lost`] was set.
    pub(super) is_head_resent: bool,
    /// Number of new segments sent since `take_stock` last ran.
    pub(super) sent: u64,
    /// Whether nothing was outstanding before the first of those segments.
    pub(super) was_idle: bool,
    /// Whether the next burst waits for cwnd.
    pub(super) is_deferred_for_cwnd: bool,
    pub(super) has_begun_burst: bool,
}

/// New segments that may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Push {
    #[default]
    Nothing,
    /// One burst, without waiting for a longer one.
    OneBurst,
    /// All segments except a short one at the end, because the application continues to write.
    WholeSegments,
    All,
}

/// Segments that may be retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rexmit {
    #[default]
    None,
    /// New segments instead of retransmissions, to detect whether a timeout was spurious.
    New,
    Lost,
}
