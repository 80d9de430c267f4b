//! The probabilities with which arms are drawn.

use crate::arm::{ArmId, Arms};
use serde::{Deserialize, Serialize};

/// The probability with which a connection is held out, and the probabilities with which each arm is drawn otherwise.
///
/// The probabilities of the arms are between 0 and 1 and add up to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    holdout: f64,
    arms: Vec<f64>,
}

impl Weights {
    /// Creates probabilities proportional to `wishes`, one per arm, without a hold-out. Negative and non-finite values
    /// count as zero. If all are zero, all arms are equally likely.
    pub fn of(wishes: &[f64]) -> Weights {
        let clean = |&wish: &f64| if wish.is_finite() && wish > 0.0 { wish } else { 0.0 };
        // Divided by the largest value first, so that the sum does not overflow.
        let most = wishes.iter().map(clean).fold(0.0, f64::max);
        let sum: f64 = wishes.iter().map(|wish| clean(wish) / most).sum();
        let arms = if most > 0.0 {
            wishes.iter().map(|wish| clean(wish) / most / sum).collect()
        } else {
            vec![1.0 / wishes.len() as f64; wishes.len()]
        };
        Weights { holdout: 0.0, arms }
    }

    /// Creates weights that always draw one arm.
    pub fn only(arms: &Arms, arm: ArmId) -> Weights {
        let mut wishes = vec![0.0; arms.len()];
        wishes[arm.index()] = 1.0;
        Weights::of(&wishes)
    }

    /// Sets the share of connections held out.
    #[must_use]
    pub fn holding_out(mut self, share: f64) -> Weights {
        self.holdout = share.clamp(0.0, 1.0);
        self
    }

    /// Returns the weights without the arms for which `is_out` is true. The others are scaled up in proportion; if all
    /// are zero, `instead` is drawn.
    #[must_use]
    pub fn without(self, instead: ArmId, is_out: impl Fn(ArmId) -> bool) -> Weights {
        let mut wishes = self.arms;
        for (number, wish) in wishes.iter_mut().enumerate() {
            if is_out(ArmId(number as u8)) {
                *wish = 0.0;
            }
        }
        if wishes.iter().all(|&wish| wish == 0.0) {
            wishes[instead.index()] = 1.0;
        }
        Weights { holdout: self.holdout, ..Weights::of(&wishes) }
    }

    /// Returns the share of connections held out.
    pub fn holdout(&self) -> f64 {
        self.holdout
    }

    /// Returns the probability of an arm, for a connection that is not held out.
    pub fn probability(&self, arm: ArmId) -> f64 {
        self.arms[arm.index()]
    }

    /// Returns the probabilities in the order of the arms.
    pub fn probabilities(&self) -> &[f64] {
        &self.arms
    }

    /// Returns the arm with the largest probability; the first one of several.
    pub fn most(&self) -> ArmId {
        let mut most = 0;
        for (number, probability) in self.arms.iter().enumerate() {
            if *probability > self.arms[most] {
                most = number;
            }
        }
        ArmId(most as u8)
    }

    /// Returns the arm that corresponds to `unit`, a uniform random number in [0, 1).
    pub fn draw(&self, unit: f64) -> ArmId {
        let mut sum = 0.0;
        for (number, probability) in self.arms.iter().enumerate() {
            sum += probability;
            if unit < sum {
                return ArmId(number as u8);
            }
        }
        // Sums of rounded numbers may end slightly below 1.
        ArmId(self.arms.iter().rposition(|&probability| probability > 0.0).unwrap_or(0) as u8)
    }

    /// Returns the cumulative probabilities as integers, for the kernel: a 32-bit random number draws the first arm
    /// whose entry exceeds it. The last entry is 2^32.
    pub fn thresholds(&self) -> Vec<u64> {
        const WHOLE: f64 = (1u64 << 32) as f64;
        let last = self.arms.iter().rposition(|&probability| probability > 0.0).unwrap_or(0);
        let mut sum = 0.0;
        let entry = |(number, &probability): (usize, &f64)| {
            sum += probability;
            if number >= last { 1 << 32 } else { (sum * WHOLE) as u64 }
        };
        self.arms.iter().enumerate().map(entry).collect()
    }
}
