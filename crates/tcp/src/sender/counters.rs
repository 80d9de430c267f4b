//! What a sender has counted.

/// What a sender has counted since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Data segments that were retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Times that a reduction of cwnd was undone.
    pub undos: u64,
    /// Loss probes (TLP) sent.
    pub tlp_probes: u64,
    /// SYNs sent again.
    pub syn_retransmits: u64,
    /// D-SACKs received.
    pub dsacks: u64,
    /// Segments delivered whose acknowledgement reported a mark (Linux: `tcpi_delivered_ce`).
    pub marked: u64,
}
