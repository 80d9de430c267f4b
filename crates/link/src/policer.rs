//! A token bucket that drops non-conforming packets (like `tc ... police ... drop`).
//!
//! Work is counted in units of 1e-9 bit, as in the module `capacity::steps`: one nanosecond at `r` bit/s adds `r`
//! units.

use thalweg_plan::plan;
use thalweg_units::{Bytes, Time};

const PER_BYTE: u128 = 8 * 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Policer {
    rate_bps: u128,
    size: u128,
    level: u128,
    filled_at: Time,
    /// Whether the policer is placed after the capacity.
    pub is_after: bool,
}

impl Policer {
    pub fn new(config: &plan::Policer) -> Policer {
        let size = u128::from(config.burst_bytes.0) * PER_BYTE;
        Policer {
            rate_bps: u128::from(config.rate_bps.0),
            size,
            level: size,
            filled_at: Time::ZERO,
            is_after: config.after,
        }
    }

    /// Whether a packet conforms; if so, its size is taken from the bucket.
    pub fn passes(&mut self, now: Time, size: Bytes) -> bool {
        let filled = self.rate_bps * u128::from(now.since(self.filled_at).0);
        self.level = self.level.saturating_add(filled).min(self.size);
        self.filled_at = now;
        let wanted = u128::from(size.0) * PER_BYTE;
        let conforms = wanted <= self.level;
        if conforms {
            self.level -= wanted;
        }
        conforms
    }
}
