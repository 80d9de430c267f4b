//! The properties of an ACK, collected step by step.

use super::rate::Delivery;
use crate::packet::Timestamp;
use thalweg_units::{Span, Time};

#[derive(Debug)]
pub(super) struct AckFacts {
    /// Whether a later ACK arrived before this one: it is below the left edge.
    pub is_overtaken: bool,
    /// Whether it advances the left edge.
    pub is_advancing: bool,
    /// Whether it acknowledges data cumulatively.
    pub is_data_acked: bool,
    /// Whether it selectively acknowledges data for the first time.
    pub is_data_sacked: bool,
    /// Whether it opens or moves the receiver's window.
    pub is_window_update: bool,
    /// Whether it carries a D-SACK that a retransmission may have caused.
    pub is_dsack: bool,
    /// Whether it carries a D-SACK that the loss probe may have caused.
    pub is_dsack_of_probe: bool,
    /// Whether it newly acknowledges, cumulatively or selectively, a segment that was sent only once, before the
    /// current recovery began.
    pub is_original_acked: bool,
    /// Whether it cumulatively acknowledges a retransmitted segment.
    pub is_resent_acked: bool,
    /// Whether the timer must be reset.
    pub is_timer_due: bool,
    /// Whether retransmissions were detected as lost.
    pub is_resent_lost: bool,
    /// Whether the receiver has probably delayed it.
    pub is_delayed: bool,
    /// Whether it reports marks.
    pub is_marked: bool,
    /// Whether it answers the retransmission of a loss probe, although it may be for the original.
    pub is_probe_answer: bool,
    /// Echoed timestamp.
    pub tsecr: Timestamp,
    /// Number of segments delivered out of order, including duplicates.
    pub out_of_order: u64,
    /// Lowest segment whose original arrived after later segments, as shown by SACK blocks; `u64::MAX` without any.
    pub reordered_from: u64,
    /// Send times of the first and last newly selectively acknowledged segments, among those sent only once.
    pub first_sacked_at: Option<Time>,
    pub last_sacked_at: Time,
    /// Input of the rate sample.
    pub delivery: Delivery,
}

impl AckFacts {
    pub fn new(tsecr: Timestamp) -> AckFacts {
        AckFacts {
            is_overtaken: false,
            is_advancing: false,
            is_data_acked: false,
            is_data_sacked: false,
            is_window_update: false,
            is_dsack: false,
            is_dsack_of_probe: false,
            is_original_acked: false,
            is_resent_acked: false,
            is_timer_due: false,
            is_resent_lost: false,
            is_delayed: false,
            is_marked: false,
            is_probe_answer: false,
            tsecr,
            out_of_order: 0,
            reordered_from: u64::MAX,
            first_sacked_at: None,
            last_sacked_at: Time::ZERO,
            delivery: Delivery::default(),
        }
    }

    /// Whether it may change the state of recovery (Linux: FLAG_CA_ALERT).
    pub fn is_alarming(&self) -> bool {
        self.is_data_sacked || self.is_dsack || self.is_marked
    }

    /// Whether it acknowledges new data cumulatively or updates the window (Linux: FLAG_NOT_DUP). New SACK blocks alone
    /// do not count.
    pub fn is_not_duplicate(&self) -> bool {
        self.is_window_update || self.is_data_acked
    }
}

/// Returns a round-trip time computed from a timestamp, with the resolution of the timestamp clock.
pub(super) fn timestamp_rtt(now: Time, tsecr: Timestamp) -> Span {
    Span::from_millis(u64::from(Timestamp::at(now).0.saturating_sub(tsecr.0)).max(1))
}
