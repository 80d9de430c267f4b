//! The transmissions that the latest event allows.

/// The transmissions that the latest event allows.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// A SYN.
    pub syn: bool,
    /// The third packet of the handshake.
    pub established: bool,
    /// The first segment, after a timeout.
    pub head: bool,
    /// A loss probe.
    pub probe: bool,
    /// Lost segments.
    pub rexmit: Rexmit,
    /// New segments.
    pub push: Push,
    /// Whether an ACK may have freed memory that the application waits for.
    pub is_space_due: bool,
    /// Whether the state is updated even if there is nothing new to send.
    pub is_stock_due: bool,
    /// Whether the first segment was retransmitted.
    pub(super) is_head_resent: bool,
    /// New segments sent since the last update.
    pub(super) sent: u64,
    /// Whether nothing was in flight before the first of them.
    pub(super) was_idle: bool,
    /// Whether the next burst waits for cwnd.
    pub(super) is_deferred_for_cwnd: bool,
    /// Whether a burst of the current push has begun.
    pub(super) has_begun_burst: bool,
}

/// New segments that may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Push {
    /// Nothing.
    #[default]
    Nothing,
    /// One burst, which waits for no longer one.
    OneBurst,
    /// All but a short segment at the end, because the application continues to write.
    WholeSegments,
    /// All.
    All,
}

/// Segments that may be retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rexmit {
    /// Nothing.
    #[default]
    None,
    /// New segments instead, to detect whether a timeout was spurious.
    New,
    /// Lost segments.
    Lost,
}
