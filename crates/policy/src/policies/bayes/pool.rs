//! Pooled estimates of the destinations of a network, by arm, in one class.
//!
//! Each destination contributes an estimate of an arm's gain, and its uncertainty. The network keeps sums, from which
//! the mean and the variance between destinations follow. When a destination's estimate changes, its previous
//! contribution is subtracted and the new one is added.

use super::cell::{Gain, GainEstimate, Prior};
use serde::{Deserialize, Serialize};

/// Total weight of destinations at which a network's mean has the same weight as that of the larger networks.
const HALF: f64 = 2.0;

/// Minimum standard deviation of gains among destinations, even if they seem to agree.
const MIN_SD: f64 = 0.15;

/// Sums over the destinations of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pool(Vec<Sums>);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sums {
    weight: f64,
    gain: f64,
    square: f64,
    variance: f64,
    noise: f64,
}

impl Sums {
    fn add(&mut self, estimate: &GainEstimate, sign: f64) {
        let weight = sign * estimate.weight;
        self.weight += weight;
        self.gain += weight * estimate.gain;
        self.square += weight * estimate.gain * estimate.gain;
        self.variance += weight * estimate.variance;
        self.noise += weight * estimate.noise;
    }
}

impl Pool {
    pub fn new(arms: usize) -> Pool {
        Pool(vec![Sums::default(); arms])
    }

    /// Replaces a destination's previous contribution with the new one.
    pub fn replace(&mut self, before: &[GainEstimate], after: &[GainEstimate]) {
        self.0.iter_mut().zip(before).for_each(|(sums, estimate)| sums.add(estimate, -1.0));
        self.0.iter_mut().zip(after).for_each(|(sums, estimate)| sums.add(estimate, 1.0));
    }

    /// Moves the estimate of larger networks towards that of this one: the more destinations this one has, the closer.
    /// The destination's own contribution is excluded, because it would be counted twice.
    pub fn inform(&self, prior: &mut Prior, own: Option<&[GainEstimate]>) {
        let mut noise = (0.0, 0.0);
        for (number, sums) in self.0.iter().enumerate() {
            let mut sums = *sums;
            if let Some(estimate) = own.and_then(|own| own.get(number)) {
                sums.add(estimate, -1.0);
            }
            // Sums with only the rounding error of added and subtracted contributions count as zero.
            if sums.weight < 1e-3 {
                continue;
            }
            noise = (noise.0 + sums.weight, noise.1 + sums.noise);
            let mean = sums.gain / sums.weight;
            let apart = (sums.square / sums.weight - mean * mean - sums.variance / sums.weight).max(0.0);
            let believed = sums.weight / (sums.weight + HALF);
            let within = (apart + (apart + sums.variance / sums.weight) / sums.weight).max(MIN_SD * MIN_SD);
            let around = prior.gains[number];
            prior.gains[number] = Gain {
                mean: believed * mean + (1.0 - believed) * around.mean,
                variance: believed * within + (1.0 - believed) * around.variance,
            };
        }
        if noise.0 > 0.0 {
            let believed = noise.0 / (noise.0 + HALF);
            prior.noise = believed * noise.1 / noise.0 + (1.0 - believed) * prior.noise;
        }
    }
}
