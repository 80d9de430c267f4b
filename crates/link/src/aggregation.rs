//! Transmission opportunities: packets wait for an opportunity and leave together, like frames in Wi-Fi, LTE and
//! DOCSIS.
//!
//! A packet without a pending opportunity schedules one, `interval` later. All packets that are ready by then depart at
//! that instant, until `max_bytes` are reached; the others wait for another interval (like netem's `slot`).

use thalweg_plan::plan;
use thalweg_units::{Bytes, Span, Time};

/// Assigns packets to opportunities.
#[derive(Debug)]
pub(crate) struct Aggregation {
    interval: Span,
    max_bytes: Option<i128>,
    opportunity: Option<Time>,
    /// Bytes left in that opportunity.
    left: i128,
}

impl Aggregation {
    pub fn new(config: &plan::Aggregation) -> Aggregation {
        let max_bytes = config.max_bytes.map(|bytes| i128::from(bytes.0));
        Aggregation { interval: config.interval_ns, max_bytes, opportunity: None, left: 0 }
    }

    /// Returns the departure of a packet that is ready at `ready`. Calls must be in the order of `ready`.
    pub fn departure(&mut self, ready: Time, size: Bytes) -> Time {
        let opportunity = match self.opportunity {
            Some(at) if at >= ready => at,
            _ => self.open(ready + self.interval),
        };
        if let Some(max_bytes) = self.max_bytes {
            self.left -= i128::from(size.0);
            // The packet that uses up the opportunity still leaves with it, so that packets of any size are sent
            // eventually.
            if self.left <= 0 {
                self.opportunity = Some(opportunity + self.interval);
                self.left = max_bytes;
            }
        }
        opportunity
    }

    fn open(&mut self, at: Time) -> Time {
        self.opportunity = Some(at);
        self.left = self.max_bytes.unwrap_or(0);
        at
    }
}
