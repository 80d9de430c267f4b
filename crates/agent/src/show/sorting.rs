//! Sorts open connections, and keeps the first N.

use super::snapshot::Open;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Sort key of the table of open connections. Numbers are in descending order, texts in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SortBy {
    /// Bits per second acknowledged since the previous query of the table; unknown without one in the last minute.
    #[default]
    Goodput,
    /// Bytes acknowledged.
    Acked,
    /// Smoothed round-trip time.
    Srtt,
    /// Smallest round-trip time.
    MinRtt,
    /// Congestion window.
    Cwnd,
    /// Retransmitted segments, including those of the handshake.
    Retransmits,
    /// Retransmitted segments per data segment sent.
    RetransmitRatio,
    /// Delivery rate.
    Rate,
    /// Time since the connection opened.
    Age,
    /// Congestion control.
    Cc,
    /// Local address and port.
    Local,
    /// Remote address and port.
    Remote,
}

impl SortBy {
    /// Compares two connections. Unknown values come last, except for ages. Ties are broken by the socket's cookie.
    pub fn order(self, a: &Open, b: &Open) -> Ordering {
        let falling = |of: fn(&Open) -> Option<f64>| {
            let of = |open: &Open| of(open).unwrap_or(f64::NEG_INFINITY);
            of(b).total_cmp(&of(a))
        };
        let first = match self {
            SortBy::Goodput => falling(|open| open.goodput_bps),
            SortBy::Acked => b.acked_bytes.cmp(&a.acked_bytes),
            SortBy::Srtt => b.srtt_us.cmp(&a.srtt_us),
            SortBy::MinRtt => b.min_rtt_us.cmp(&a.min_rtt_us),
            SortBy::Cwnd => b.cwnd_packets.cmp(&a.cwnd_packets),
            SortBy::Retransmits => b.retransmits.cmp(&a.retransmits),
            SortBy::RetransmitRatio => falling(Open::retransmit_ratio),
            SortBy::Rate => b.delivery_rate_bps.cmp(&a.delivery_rate_bps),
            // A connection without an age was usually open before recording began, so it counts as the oldest.
            SortBy::Age => b.age_us.unwrap_or(u64::MAX).cmp(&a.age_us.unwrap_or(u64::MAX)),
            SortBy::Cc => a.cc.cmp(&b.cc),
            SortBy::Local => a.local.cmp(&b.local),
            SortBy::Remote => a.remote.cmp(&b.remote),
        };
        first.then(a.connection.cmp(&b.connection))
    }
}

/// Maximum number of rows of an answer, which bounds the agent's memory.
pub const MAX_ROWS: usize = 10_000;

/// Sort key, and maximum number of connections.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Sort key.
    pub sort: SortBy,
    /// Maximum number of connections.
    pub limit: usize,
}

impl Selection {
    /// Returns the first connections in this order; holds at most `2 * limit + 1` at a time.
    pub fn pick(&self, all: impl Iterator<Item = Open>) -> Vec<Open> {
        let order = |a: &Open, b: &Open| self.sort.order(a, b);
        let mut kept = Vec::new();
        for open in all {
            kept.push(open);
            if kept.len() > self.limit.saturating_mul(2) {
                kept.sort_unstable_by(order);
                kept.truncate(self.limit);
            }
        }
        kept.sort_unstable_by(order);
        kept.truncate(self.limit);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(connection: u64) -> Open {
        Open { connection, ..Open::default() }
    }

    fn sorted(by: SortBy, all: Vec<Open>) -> Vec<u64> {
        Selection { sort: by, limit: 10 }.pick(all.into_iter()).iter().map(|open| open.connection).collect()
    }

    #[test]
    fn numbers_sort_descending_with_unknown_values_last() {
        let with = |connection, goodput_bps| Open { goodput_bps, ..open(connection) };
        let all = vec![with(1, None), with(2, Some(5.0)), with(3, Some(50.0)), with(4, Some(0.0))];
        assert_eq!(sorted(SortBy::Goodput, all), [3, 2, 4, 1]);
    }

    #[test]
    fn ratios_sort_by_their_value_and_the_sort_is_stable() {
        let with = |connection, retransmits, segments| Open { retransmits, segments, ..open(connection) };
        let all = vec![with(3, 1, 100), with(2, 5, 1000), with(1, 0, 0), with(4, 1, 100)];
        assert_eq!(sorted(SortBy::RetransmitRatio, all.clone()), [3, 4, 2, 1]);
        assert_eq!(sorted(SortBy::Retransmits, all), [2, 3, 4, 1]);
    }

    #[test]
    fn texts_sort_ascending_and_connections_opened_before_recording_are_the_oldest() {
        let with = |connection, cc: &str, age_us| Open { cc: cc.to_owned(), age_us, ..open(connection) };
        let all = vec![with(1, "reno", Some(5)), with(2, "bbr", None), with(3, "cubic", Some(9))];
        assert_eq!(sorted(SortBy::Cc, all.clone()), [2, 3, 1]);
        assert_eq!(sorted(SortBy::Age, all), [2, 3, 1]);
    }

    #[test]
    fn the_top_rows_equal_those_of_a_full_sort() {
        let with = |connection| Open { acked_bytes: connection * 7919 % 10_007, ..open(connection) };
        let mut all: Vec<Open> = (0..10_000).map(with).collect();
        let picked = Selection { sort: SortBy::Acked, limit: 25 }.pick(all.iter().cloned());
        all.sort_by_key(|open| std::cmp::Reverse(open.acked_bytes));
        assert_eq!(picked, all[..25]);
        assert_eq!(Selection { sort: SortBy::Acked, limit: 0 }.pick(all.into_iter()), []);
    }
}
