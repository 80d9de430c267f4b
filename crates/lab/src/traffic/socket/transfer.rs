//! A transfer on a connection, and its row.

use crate::diag::TcpInfo;
use crate::protocol::{self, FlowReport};
use thalweg_traffic::{Item, Message};
use thalweg_units::Time;

/// A transfer, before its end.
#[derive(Clone, Copy, Debug)]
pub(in crate::traffic) struct Transfer {
    /// Time before connect(2) or the first write; for a message of an application, the time at which it was due.
    pub(in crate::traffic) start: Time,
    /// Size in bytes; `None` if unlimited.
    pub(in crate::traffic) size: Option<u64>,
    /// Offset of the transfer in the stream, in bytes.
    pub(in crate::traffic) offset: u64,
    /// The kernel's counters before the first byte; `None` before the connection is established.
    pub(in crate::traffic) before: Option<TcpInfo>,
    /// Item of an application that the transfer carries; `None` for other loads.
    pub(in crate::traffic) item: Option<Item>,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::traffic) struct End {
    pub(in crate::traffic) at: Time,
    /// Number of acknowledged bytes of the stream.
    pub(in crate::traffic) acked: u64,
    /// The kernel's state of the connection.
    pub(in crate::traffic) info: TcpInfo,
}

impl Transfer {
    /// Returns the transfer of an application's message at this offset in the stream.
    pub(in crate::traffic) fn of(message: &Message, offset: u64, before: Option<TcpInfo>) -> Transfer {
        Transfer { start: message.due, size: Some(message.size.0), offset, before, item: Some(message.item) }
    }

    /// Returns the offset of the transfer's end in the stream; `None` if unlimited.
    pub(in crate::traffic) fn stream_end(&self) -> Option<u64> {
        self.size.map(|size| self.offset + size)
    }

    /// Returns the row, without the round-trip times from samples and the stall.
    pub(in crate::traffic) fn report(&self, of: protocol::Connection, transfer: u64, end: &End) -> FlowReport {
        let acked = end.acked.saturating_sub(self.offset);
        // Without an established connection, all counts belong to the SYN.
        let before = self.before.unwrap_or(end.info);
        let since = |count: fn(&TcpInfo) -> u64| count(&end.info).saturating_sub(count(&before));
        FlowReport {
            of,
            transfer,
            size_bytes: self.size,
            start_us: self.start.as_micros(),
            end_us: end.at.max(self.start).as_micros(),
            completed: self.stream_end().is_some_and(|last| end.acked >= last),
            acked_bytes: self.size.map_or(acked, |size| acked.min(size)),
            segments: since(|info| info.segments),
            retransmits: Some(since(|info| info.retransmits)),
            timeouts: end.info.timeouts.zip(before.timeouts).map(|(after, before)| timeouts_between(before, after)),
            marked_segments: Some(since(|info| info.marked_segments)),
            rtt_min_us: end.info.min_rtt_us.map(|rtt| rtt as f64),
            rtt_mean_us: None,
            rtt_p50_us: None,
            rtt_p95_us: None,
            rtt_p99_us: None,
            item: self.item.map(|item| item.number),
            bitrate_bps: self.item.and_then(|item| item.bitrate).map(|rate| rate.0),
            stall_us: None,
        }
    }
}

/// Returns the difference of two timeout counters, which have 16 bits in the kernel.
fn timeouts_between(before: u64, after: u64) -> u64 {
    after.wrapping_sub(before) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: protocol::Connection = protocol::Connection { flow: 0, copy: 0, connection: 0 };

    fn counted(segments: u64, retransmits: u64, timeouts: u64) -> TcpInfo {
        TcpInfo { segments, retransmits, timeouts: Some(timeouts), min_rtt_us: Some(900), ..TcpInfo::default() }
    }

    #[test]
    fn a_later_transfer_counts_only_events_since_its_start() {
        let transfer = Transfer {
            start: Time(5_000_000),
            size: Some(10_000),
            offset: 40_000,
            before: Some(counted(30, 2, 65_535)),
            item: None,
        };
        let end = End { at: Time(9_000_000), acked: 50_000, info: counted(38, 3, 1) };
        let report = transfer.report(OF, 4, &end);
        assert!(report.completed);
        assert_eq!((report.start_us, report.end_us, report.acked_bytes), (5_000, 9_000, 10_000));
        assert_eq!((report.segments, report.retransmits, report.timeouts), (8, Some(1), Some(2)));
    }

    #[test]
    fn a_connection_that_never_opened_sent_no_segments() {
        let transfer = Transfer { start: Time(1_000), size: Some(10), offset: 0, before: None, item: None };
        let report = transfer.report(OF, 0, &End { at: Time(2_000), acked: 0, info: counted(0, 4, 4) });
        assert!(!report.completed);
        assert_eq!((report.retransmits, report.timeouts, report.acked_bytes), (Some(0), Some(0), 0));
    }

    #[test]
    fn an_unlimited_transfer_never_completes() {
        let transfer = Transfer { start: Time(0), size: None, offset: 0, before: None, item: None };
        let report = transfer.report(OF, 0, &End { at: Time(2_000), acked: 77, info: counted(1, 0, 0) });
        assert!(!report.completed);
        assert_eq!(report.acked_bytes, 77);
    }
}
