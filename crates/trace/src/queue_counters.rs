//! Counters of a link.

use crate::tables::QueueRow;
use serde::{Deserialize, Serialize};

/// The counters of a link at one moment: the columns of the table `queue` that are not keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the table says what the columns mean")]
pub struct QueueCounters {
    pub backlog_bytes: u64,
    pub backlog_packets: u64,
    pub dropped_packets: u64,
    pub early_drops: Option<u64>,
    pub policed_packets: Option<u64>,
    pub lost_packets: u64,
    pub marked_packets: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub sojourn_sum_us: Option<u64>,
    pub capacity_bytes: Option<u64>,
}

impl QueueRow {
    /// The row of a link: its table's keys, and the counters.
    pub fn new(experiment: u64, repetition: u64, link: &'static str, t_us: u64, counters: QueueCounters) -> QueueRow {
        QueueRow {
            experiment,
            repetition,
            link,
            t_us,
            backlog_bytes: counters.backlog_bytes,
            backlog_packets: counters.backlog_packets,
            dropped_packets: counters.dropped_packets,
            early_drops: counters.early_drops,
            policed_packets: counters.policed_packets,
            lost_packets: counters.lost_packets,
            marked_packets: counters.marked_packets,
            sent_packets: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            sojourn_sum_us: counters.sojourn_sum_us,
            capacity_bytes: counters.capacity_bytes,
        }
    }
}
