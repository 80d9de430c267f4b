//! Counts rows for [`Metrics`].
//!
//! Finding a metric by its labels and incrementing an atomic counter is expensive. Therefore, rows are counted in local
//! counters, which are added to the shared metrics from time to time.

use super::metrics::Metrics;
use prometheus::local::{LocalHistogram, LocalIntCounter};
use prometheus::{HistogramVec, IntCounterVec};
use std::sync::Arc;
use thalweg_trace::RecordRow;

/// Size classes of transfers: upper bound in bytes (exclusive), and label.
const SIZES: [(u64, &str); 4] =
    [(100_000, "<100kB"), (1_000_000, "100kB-1MB"), (10_000_000, "1MB-10MB"), (u64::MAX, ">=10MB")];

/// Local counters of rows.
pub struct Tally {
    metrics: Arc<Metrics>,
    algorithms: Vec<Algorithm>,
}

impl Tally {
    /// Returns a tally with all counters at zero.
    pub fn new(metrics: Arc<Metrics>) -> Tally {
        Tally { metrics, algorithms: Vec::new() }
    }

    /// Counts a row. Interim rows are ignored: a connection is counted when it closes.
    pub fn take(&mut self, row: &RecordRow) {
        let is_transfer = row.kind == "transfer";
        if !is_transfer && row.kind != "close" {
            return;
        }
        let name = row.cc.as_deref().unwrap_or("unknown");
        // There are few algorithms.
        let index = self.algorithms.iter().position(|algorithm| algorithm.name == name);
        let number = index.unwrap_or_else(|| {
            self.algorithms.push(Algorithm::new(name));
            self.algorithms.len() - 1
        });
        let algorithm = &mut self.algorithms[number];
        if is_transfer {
            algorithm.take_transfer(&self.metrics, row);
        } else {
            algorithm.take_close(&self.metrics, row);
        }
    }

    /// Adds the local counts to the shared metrics.
    pub fn publish(&self) {
        self.algorithms.iter().for_each(Algorithm::publish);
    }
}

/// A histogram of an algorithm, created with its first value.
#[derive(Default)]
struct Histogram(Option<LocalHistogram>);

impl Histogram {
    fn observe(&mut self, of: &HistogramVec, labels: &[&str], value: f64) {
        self.0.get_or_insert_with(|| of.with_label_values(labels).local()).observe(value);
    }
}

/// A counter of an algorithm, created at its first use.
#[derive(Default)]
struct Counter(Option<LocalIntCounter>);

impl Counter {
    fn add(&mut self, of: &IntCounterVec, labels: &[&str], count: u64) {
        self.0.get_or_insert_with(|| of.with_label_values(labels).local()).inc_by(count);
    }
}

#[derive(Default)]
struct Algorithm {
    name: String,
    transfer_size: Histogram,
    /// Completion time and goodput, by size class.
    transfers: [(Histogram, Histogram); SIZES.len()],
    rtt_min: Histogram,
    rtt_smoothed: Histogram,
    retransmit_ratio: Histogram,
    connection_size: Histogram,
    /// Number of closed connections, by reason of the close.
    closed: Vec<(&'static str, Counter)>,
    cpu_limited: Counter,
    sent: Counter,
    acked: Counter,
    received: Counter,
    retransmitted: Counter,
}

impl Algorithm {
    fn new(name: &str) -> Algorithm {
        Algorithm { name: name.to_owned(), ..Algorithm::default() }
    }

    fn take_transfer(&mut self, metrics: &Metrics, row: &RecordRow) {
        let Some(bytes) = row.acked_bytes else { return };
        let cc = self.name.as_str();
        self.transfer_size.observe(&metrics.transfer_size, &[cc], bytes as f64);
        let size = size(bytes);
        let labels = [cc, SIZES[size].1];
        let (completion_time, goodput) = &mut self.transfers[size];
        if let Some(us) = row.fct_us {
            completion_time.observe(&metrics.completion_time, &labels, us as f64 / 1e6);
        }
        if let Some(bps) = row.goodput_bps {
            goodput.observe(&metrics.goodput, &labels, bps / 8.0);
        }
    }

    fn take_close(&mut self, metrics: &Metrics, row: &RecordRow) {
        let cc = self.name.as_str();
        let how = row.close.unwrap_or("unknown");
        let index = self.closed.iter().position(|(other, _)| *other == how).unwrap_or_else(|| {
            self.closed.push((how, Counter::default()));
            self.closed.len() - 1
        });
        self.closed[index].1.add(&metrics.closed, &[cc, how], 1);
        // A BBR connection without a verdict counts as not limited, so that a count of zero is exported, too.
        if row.cpu_limited.is_some() || cc.starts_with("bbr") {
            self.cpu_limited.add(&metrics.cpu_limited, &[cc], u64::from(row.cpu_limited == Some(true)));
        }
        for (counter, of, bytes) in [
            (&mut self.sent, &metrics.sent, row.sent_bytes),
            (&mut self.acked, &metrics.acked, row.acked_bytes),
            (&mut self.received, &metrics.received, row.received_bytes),
            (&mut self.retransmitted, &metrics.retransmitted, row.retransmitted_bytes),
        ] {
            counter.add(of, &[cc], bytes.unwrap_or(0));
        }
        let seconds = |us: Option<u64>| us.map(|us| us as f64 / 1e6);
        let ratio = match (row.retransmits, row.segments) {
            (Some(again), Some(all)) if all > 0 => Some(again as f64 / all as f64),
            _ => None,
        };
        for (histogram, of, value) in [
            (&mut self.rtt_min, &metrics.rtt_min, seconds(row.rtt_min_us)),
            (&mut self.rtt_smoothed, &metrics.rtt_smoothed, seconds(row.rtt_smoothed_us)),
            (&mut self.retransmit_ratio, &metrics.retransmit_ratio, ratio),
            (&mut self.connection_size, &metrics.connection_size, row.acked_bytes.map(|bytes| bytes as f64)),
        ] {
            if let Some(value) = value {
                histogram.observe(of, &[cc], value);
            }
        }
    }

    fn publish(&self) {
        let transfers = self.transfers.iter().flat_map(|(completion_time, goodput)| [completion_time, goodput]);
        let others = [&self.transfer_size, &self.rtt_min, &self.rtt_smoothed, &self.retransmit_ratio];
        let all = transfers.chain(others).chain([&self.connection_size]);
        all.filter_map(|histogram| histogram.0.as_ref()).for_each(LocalHistogram::flush);
        let closed = self.closed.iter().map(|(_, counter)| counter);
        let others = [&self.cpu_limited, &self.sent, &self.acked, &self.received, &self.retransmitted];
        closed.chain(others).filter_map(|counter| counter.0.as_ref()).for_each(LocalIntCounter::flush);
    }
}

/// Returns the index of the size class of a transfer.
fn size(bytes: u64) -> usize {
    SIZES.iter().position(|(bound, _)| bytes < *bound).unwrap_or(SIZES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_falls_into_the_matching_size_class() {
        let of =
            [99_999, 100_000, 999_999, 1_000_000, 9_999_999, 10_000_000, u64::MAX].map(|bytes| SIZES[size(bytes)].1);
        assert_eq!(of, ["<100kB", "100kB-1MB", "100kB-1MB", "1MB-10MB", "1MB-10MB", ">=10MB", ">=10MB"]);
    }
}
