//! The facts of one ACK.

use super::rate::Delivery;
use crate::packet::Timestamp;
use thalweg_units::{Span, Time};

/// The facts of one ACK, gathered step by step.
#[derive(Debug)]
pub(super) struct AckFacts {
    /// A later ACK arrived before it: it is below the left edge.
    pub is_overtaken: bool,
    /// It moves the left edge.
    pub is_advancing: bool,
    /// It acknowledges data cumulatively.
    pub is_data_acked: bool,
    /// It selectively acknowledges data for the first time.
    pub is_data_sacked: bool,
    /// It opens the receiver's window, or moves it.
    pub is_window_update: bool,
    /// It carries a D-SACK that can be due to a retransmission.
    pub is_dsack: bool,
    /// It carries a D-SACK that a retransmission may have caused.
    pub is_dsack_of_probe: bool,
    /// It acknowledges, in either way, a segment that was sent once, before the current recovery began.
    pub is_original_acked: bool,
    /// It acknowledges a retransmitted segment cumulatively.
    pub is_resent_acked: bool,
    /// The timer is to be reset.
    pub is_timer_due: bool,
    /// Retransmissions were found to be lost.
    pub is_resent_lost: bool,
    /// The receiver has probably delayed it.
    pub is_delayed: bool,
    /// It reports marks.
    pub is_marked: bool,
    /// It answers a loss probe's copy, and may be for the original.
    pub is_probe_answer: bool,
    /// Echoed timestamp.
    pub tsecr: Timestamp,
    /// Segments delivered out of order, and copies.
    pub out_of_order: u64,
    /// The lowest segment that was sent once and arrived after later ones.
    pub reordered_from: u64,
    /// Send times of the first and last segments newly selectively acknowledged, among those sent once.
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

    /// Whether it contains news compared with the previous ACK.
    pub fn is_not_duplicate(&self) -> bool {
        self.is_window_update || self.is_data_acked
    }
}

/// A round-trip time from a timestamp, as coarse as the timestamp clock.
pub(super) fn timestamp_rtt(now: Time, tsecr: Timestamp) -> Span {
    Span::from_millis(u64::from(Timestamp::at(now).0.saturating_sub(tsecr.0)).max(1))
}
