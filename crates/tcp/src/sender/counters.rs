//! Counters of a sender.

/// Counters of a sender since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, including retransmissions.
    pub segments: u64,
    /// Data segments that were retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts of data.
    pub timeouts: u64,
    /// Number of fast recoveries.
    pub recoveries: u64,
    /// Number of recoveries and timeouts that were found to be spurious.
    pub undos: u64,
    /// Loss probes (TLP) sent.
    pub tlp_probes: u64,
    /// Retransmitted SYNs.
    pub syn_retransmits: u64,
    /// Segments that D-SACKs have reported as duplicates.
    pub dsacks: u64,
    /// Segments delivered whose acknowledgement reported a mark (Linux: `tcpi_delivered_ce`); with accurate feedback,
    /// segments that were marked.
    pub marked: u64,
}
