//! Fixed points that represent a posterior, so that probabilities can be computed without random numbers.
//!
//! The points are a Latin hypercube: in each dimension they lie in the middle of equally likely strata, one per
//! stratum, in an order shuffled with a fixed seed. So each dimension has nearly its exact distribution.

use super::cell::Belief;
use crate::arm::MAX_ARMS;
use crate::math::normal_quantile;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const POINTS: usize = 256;

/// Number of dimensions: one per arm, one for the level, and one for the noise.
const DIMENSIONS: usize = MAX_ARMS + 2;
const LEVEL: usize = MAX_ARMS;
const NOISE: usize = MAX_ARMS + 1;

/// The points, with a standard normal distribution in each dimension.
#[derive(Clone, Debug)]
pub(super) struct Nodes(Vec<[f64; DIMENSIONS]>);

impl Default for Nodes {
    fn default() -> Nodes {
        let mut stream = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut points = vec![[0.0; DIMENSIONS]; POINTS];
        for dimension in 0..DIMENSIONS {
            let mut strata: Vec<usize> = (0..POINTS).collect();
            for last in (1..POINTS).rev() {
                let other = ((u128::from(stream.next_u64()) * (last as u128 + 1)) >> 64) as usize;
                strata.swap(last, other);
            }
            for (point, stratum) in points.iter_mut().zip(strata) {
                point[dimension] = normal_quantile((stratum as f64 + 0.5) / POINTS as f64);
            }
        }
        Nodes(points)
    }
}

impl Nodes {
    /// Returns the probability that each arm is the best. `freedom` is the number of degrees of freedom of the noise.
    pub(super) fn wins(&self, beliefs: &[Belief], freedom: f64) -> Vec<f64> {
        let spreads: Vec<f64> = beliefs.iter().map(|belief| libm::sqrt(belief.variance)).collect();
        let mut wins = vec![0.0; beliefs.len()];
        for point in &self.0 {
            let scale = heavier(point[NOISE], freedom);
            let mut best = (f64::NEG_INFINITY, 0);
            for (arm, (belief, spread)) in beliefs.iter().zip(&spreads).enumerate() {
                let value = belief.mean + scale * (spread * point[arm] + belief.with_level * point[LEVEL]);
                if value > best.0 {
                    best = (value, arm);
                }
            }
            wins[best.1] += 1.0 / POINTS as f64;
        }
        wins
    }
}

/// Returns the factor that converts a normal deviate to one of Student's distribution: sqrt(freedom / chi-squared),
/// with the Wilson-Hilferty cube for chi-squared.
fn heavier(z: f64, freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom.max(1.0));
    let root = 1.0 - part + z * libm::sqrt(part);
    // With few degrees of freedom the cube may approach zero or become negative, so the factor is limited to 5.
    libm::sqrt(1.0 / (root * root * root).max(0.04))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(mean: f64, variance: f64, with_level: f64) -> Belief {
        Belief { mean, variance, with_level }
    }

    #[test]
    fn equal_posteriors_have_equal_probabilities() {
        let wins = Nodes::default().wins(&[belief(0.0, 1.0, 0.0); 4], 30.0);
        assert!(wins.iter().all(|win| (win - 0.25).abs() < 0.06), "{wins:?}");
    }

    #[test]
    fn probabilities_match_the_normal_distribution() {
        // The difference is N(1, 2), which is positive with a probability of 76 %.
        let wins = Nodes::default().wins(&[belief(1.0, 1.0, 0.0), belief(0.0, 1.0, 0.0)], 1e6);
        assert!((wins[0] - 0.760).abs() < 0.05, "{wins:?}");
    }

    #[test]
    fn a_common_offset_of_the_arms_does_not_matter() {
        let nodes = Nodes::default();
        let apart = nodes.wins(&[belief(0.3, 0.1, 0.0), belief(0.0, 0.1, 0.0)], 1e6);
        let shared = nodes.wins(&[belief(0.3, 0.1, 9.0), belief(0.0, 0.1, 9.0)], 1e6);
        assert!((apart[0] - shared[0]).abs() < 1e-9, "{apart:?} {shared:?}");
    }

    #[test]
    fn few_degrees_of_freedom_widen_the_posterior() {
        let pair = [belief(3.0, 1.0, 0.0), belief(0.0, 1.0, 0.0)];
        let nodes = Nodes::default();
        assert!(nodes.wins(&pair, 2.0)[1] > nodes.wins(&pair, 100.0)[1]);
    }
}
