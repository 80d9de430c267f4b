//! Lateness of packets relative to the time at which the emulated link delivers them.

use thalweg_trace::Histogram;
use thalweg_units::{Span, Time};

#[derive(Debug, Default)]
pub(super) struct Lateness {
    histogram: Histogram,
    worst: Span,
    packets: u64,
}

impl Lateness {
    /// Adds a packet that was due at one time and was sent at another.
    pub fn add(&mut self, due: Time, sent: Time) {
        let late = sent.since(due);
        self.histogram.add(late);
        self.worst = self.worst.max(late);
        self.packets += 1;
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the lateness at a quantile in thousandths, in microseconds; 0 without packets.
    pub fn quantile_us(&self, per_mille: u64) -> f64 {
        self.histogram.quantile_us(per_mille).unwrap_or(0.0)
    }

    /// Returns the maximum lateness in microseconds.
    pub fn worst_us(&self) -> f64 {
        self.worst.0 as f64 / 1e3
    }
}
