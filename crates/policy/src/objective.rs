//! The objective: the reward of each outcome.

use crate::outcome::{Outcome, Size};
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, MSS};

/// The operator's objective for connections.
///
/// The reward of an outcome is `s ln(bytes) - ln(seconds) - price x retransmit ratio`, so that a difference of 0.1
/// between two arms is about a tenth of the time or of the rate, on any path. For long connections `s` is 1, and the
/// first two terms are the logarithm of throughput. For shorter ones, which are evaluated by completion time, `s` is
/// 1/2, because completion times grow with a power of the size between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// Minimum size of a connection that is evaluated; by default, smaller ones fit into the initial window.
    pub least: Bytes,
    /// Minimum size of medium connections.
    pub medium_from: Bytes,
    /// Minimum size of long connections, which are evaluated by throughput.
    pub long_from: Bytes,
    /// Price of retransmissions: with 1, retransmitting a tenth of the segments is about as bad as a completion time
    /// that is a tenth longer.
    pub retransmit_price: f64,
}

impl Default for Objective {
    fn default() -> Objective {
        Objective {
            least: Bytes(10 * MSS.0),
            medium_from: Bytes(100_000),
            // Shah, "BBR Evaluation at a Large CDN" (2019): completion time below 3 MB, throughput for larger
            // transfers.
            long_from: Bytes(3_000_000),
            retransmit_price: 1.0,
        }
    }
}

impl Objective {
    /// Returns the class of a size.
    pub fn size(&self, bytes: Bytes) -> Size {
        if bytes >= self.long_from {
            Size::Long
        } else if bytes >= self.medium_from {
            Size::Medium
        } else {
            Size::Short
        }
    }

    /// Returns the reward of an outcome; more is better. `None` if the connection was too small, or its duration is
    /// unknown or was determined by the application.
    pub fn reward(&self, outcome: &Outcome) -> Option<f64> {
        if outcome.acked < self.least {
            return None;
        }
        let span = match outcome.completion {
            Some(span) => span,
            None if outcome.is_app_limited => return None,
            None => outcome.busy,
        };
        if span.0 == 0 {
            return None;
        }
        let power = if self.size(outcome.acked) == Size::Long { 1.0 } else { 0.5 };
        let size = power * libm::log(outcome.acked.0 as f64);
        Some(size - libm::log(span.as_secs_f64()) - self.retransmit_price * outcome.retransmit_ratio())
    }
}
