//! Probabilities, and random decisions from 64 random bits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A probability from 0 to 1. Deserialization does not check the range.
///
/// It is a float, because papers use loss ratios as small as 1e-12; [`Probability::sample`] compares it with random
/// bits at a resolution of 2^-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Probability(f64);

impl Probability {
    /// Probability 0.
    pub const NEVER: Probability = Probability(0.0);
    /// Probability 1.
    pub const ALWAYS: Probability = Probability(1.0);

    /// Returns the probability `p`, or `None` if it is not between 0 and 1.
    pub fn new(p: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// Returns the probability as a number.
    pub const fn as_f64(self) -> f64 {
        self.0
    }

    /// Whether the event occurs, given 64 uniformly random bits.
    pub fn sample(self, bits: u64) -> bool {
        // `as` saturates, so a probability of 1 becomes u64::MAX, which the second condition handles.
        let threshold = (self.0 * 2f64.powi(64)) as u64;
        self.0 > 0.0 && (bits < threshold || threshold == u64::MAX)
    }
}
