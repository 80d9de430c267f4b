//! The probability with which each arm is drawn.

use crate::arm::{ArmId, Arms};
use serde::{Deserialize, Serialize};

/// The probability with which a connection is held out, and with which one each arm is drawn if it is not.
///
/// The probabilities of the arms are from 0 to 1 and add up to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    holdout: f64,
    arms: Vec<f64>,
}

impl Weights {
    /// Makes probabilities in proportion to `wishes`, one for each arm, without a hold-out. Negative wishes and NaN
    /// count as zero; if all are zero, all arms are equal.
    pub fn of(wishes: &[f64]) -> Weights {
        let clean = |&wish: &f64| if wish.is_finite() && wish > 0.0 { wish } else { 0.0 };
        // Divided by the largest first, so that no sum is too large to be a number.
        let most = wishes.iter().map(clean).fold(0.0, f64::max);
        let sum: f64 = wishes.iter().map(|wish| clean(wish) / most).sum();
        let arms = if most > 0.0 {
            wishes.iter().map(|wish| clean(wish) / most / sum).collect()
        } else {
            vec![1.0 / wishes.len() as f64; wishes.len()]
        };
        Weights { holdout: 0.0, arms }
    }

    /// One arm for all.
    pub fn only(arms: &Arms, arm: ArmId) -> Weights {
        let mut wishes = vec![0.0; arms.len()];
        wishes[arm.index()] = 1.0;
        Weights::of(&wishes)
    }

    /// The same with a share held out.
    #[must_use]
    pub fn holding_out(mut self, share: f64) -> Weights {
        self.holdout = share.clamp(0.0, 1.0);
        self
    }

    /// Returns the weights without the arms for which `is_out` is true: their probability is distributed over the
    /// others in proportion. `instead` gets all of it if the others have none.
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

    /// Returns the share of connections that keep the system's default, for comparison with the others.
    pub fn holdout(&self) -> f64 {
        self.holdout
    }

    /// The probability of an arm, for a connection that is not held out.
    pub fn probability(&self, arm: ArmId) -> f64 {
        self.arms[arm.index()]
    }

    /// The probabilities in the order of the arms.
    pub fn probabilities(&self) -> &[f64] {
        &self.arms
    }

    /// The arm with the largest probability, the first of several.
    pub fn most(&self) -> ArmId {
        let mut most = 0;
        for (number, probability) in self.arms.iter().enumerate() {
            if *probability > self.arms[most] {
                most = number;
            }
        }
        ArmId(most as u8)
    }

    /// The arm that a number drawn evenly from 0 up to, not including, 1 stands for.
    pub fn draw(&self, unit: f64) -> ArmId {
        let mut sum = 0.0;
        for (number, probability) in self.arms.iter().enumerate() {
            sum += probability;
            if unit < sum {
                return ArmId(number as u8);
            }
        }
        // Sums of rounded numbers may end slightly below 1: returns the last arm with a positive probability.
        ArmId(self.arms.iter().rposition(|&probability| probability > 0.0).unwrap_or(0) as u8)
    }

    /// For a kernel, which has no fractions: a random number of 32 bits draws the first arm whose entry it is below.
    /// Entries never fall, the last is 2^32, and an arm without a probability is never the first.
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
