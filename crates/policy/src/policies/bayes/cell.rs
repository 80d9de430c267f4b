//! Estimates of the arms at one destination, in one class of connections.

use crate::arm::ArmId;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Prior variance of the noise of rewards, a standard deviation of 0.4.
const NOISE: f64 = 0.16;

/// Number of connections to which the prior of the noise is equivalent.
const NOISE_FREEDOM: f64 = 4.0;

/// Minimum variance of the noise, a standard deviation of 3 %.
const MIN_NOISE: f64 = 1e-3;

/// CUSUM: the slack per connection and the threshold of the sum, in standard deviations.
const CUSUM_SLACK: f64 = 0.75;
const CUSUM_LIMIT: f64 = 6.0;

/// Limit on the deviation of a single connection, in standard deviations: one timeout does not prove a new path.
const OUTLIER: f64 = 3.0;

/// Weight of the newest reward in an arm's recent mean.
const LATELY: f64 = 0.4;

/// Number of connections to which an arm's recent mean is equivalent after a change.
const LATELY_COUNT: f64 = 3.0;

/// Minimum weight of connections for a prediction, a recent mean, or a published gain.
const MIN_COUNT: f64 = 0.2;

/// Prior of a class of connections to a destination: the arms' gains over the default, and the noise.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    pub gains: Vec<Gain>,
    /// Variance of the noise.
    pub noise: f64,
}

/// A normally distributed gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gain {
    pub mean: f64,
    pub variance: f64,
}

impl Prior {
    /// Creates a prior in which only the order of magnitude of gains is known.
    pub fn vague(arms: usize, default: ArmId, sd: f64) -> Prior {
        let mut gains = vec![Gain { mean: 0.0, variance: sd * sd }; arms];
        gains[default.index()] = Gain { mean: 0.0, variance: 0.0 };
        Prior { gains, noise: NOISE }
    }
}

/// Belief about an arm's mean reward: normally distributed as `mean + sqrt(variance) z + with_level l`, where `l` is
/// the same for all arms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Belief {
    pub mean: f64,
    pub variance: f64,
    /// Coefficient of the common level.
    pub with_level: f64,
}

/// Belief about all arms.
pub(super) struct Posterior {
    pub beliefs: Vec<Belief>,
    /// Variance of the noise.
    pub noise: f64,
    /// Degrees of freedom of the noise estimate.
    pub freedom: f64,
}

/// A destination's estimate of an arm's gain, which is added to its networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GainEstimate {
    /// Weight of the estimate, from 0 to 1.
    pub weight: f64,
    /// Gain over the default.
    pub gain: f64,
    /// Variance of the gain that is due to noise.
    pub variance: f64,
    /// Variance of the noise of a single connection.
    pub noise: f64,
}

/// Rewards at one destination, in one class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    arms: Vec<Rewards>,
    /// Sum of squared prediction errors, and their number.
    scatter: f64,
    freedom: f64,
    rising: f64,
    falling: f64,
    published: Vec<GainEstimate>,
    at: Time,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Rewards {
    n: f64,
    mean: f64,
    lately: f64,
}

impl Cell {
    pub fn new(prior: &Prior) -> Cell {
        let arms = prior.gains.len();
        Cell {
            arms: vec![Rewards::default(); arms],
            scatter: 0.0,
            freedom: 0.0,
            rising: 0.0,
            falling: 0.0,
            published: vec![GainEstimate::default(); arms],
            at: Time::ZERO,
        }
    }

    pub fn at(&self) -> Time {
        self.at
    }

    pub fn seen(&self) -> f64 {
        self.arms.iter().map(|arm| arm.n).sum()
    }

    /// Returns the weight of an arm's connections.
    pub fn count(&self, arm: ArmId) -> f64 {
        self.arms[arm.index()].n
    }

    /// Returns the estimates that are included in its networks.
    pub fn published(&self) -> &[GainEstimate] {
        &self.published
    }

    /// Multiplies the weight of the current data by `keep`.
    pub fn forget(&mut self, keep: f64) {
        self.arms.iter_mut().for_each(|arm| arm.n *= keep);
        self.scatter *= keep;
        self.freedom *= keep;
    }

    /// Returns the beliefs, with counts multiplied by `kept`.
    pub fn posterior(&self, prior: &Prior, default: ArmId, kept: f64) -> Posterior {
        let freedom = NOISE_FREEDOM + kept * self.freedom;
        let noise = ((NOISE_FREEDOM * prior.noise + kept * self.scatter) / freedom).max(MIN_NOISE);
        // Each arm provides an estimate of the level: its mean reward less its expected gain.
        let (mut precision, mut sum) = (0.0, 0.0);
        for (arm, gain) in self.arms.iter().zip(&prior.gains) {
            if arm.n * kept > 0.0 {
                let weight = 1.0 / (noise / (arm.n * kept) + gain.variance);
                precision += weight;
                sum += weight * (arm.mean - gain.mean);
            }
        }
        let (level, level_sd) =
            if precision > 0.0 { (sum / precision, libm::sqrt(1.0 / precision)) } else { (0.0, 0.0) };
        let belief = |(number, (arm, gain)): (usize, (&Rewards, &Gain))| {
            if number == default.index() {
                return Belief { mean: level, variance: 0.0, with_level: level_sd };
            }
            let signal = arm.n * kept * gain.variance;
            let own = signal / (signal + noise);
            Belief {
                mean: own * arm.mean + (1.0 - own) * (level + gain.mean),
                variance: (1.0 - own) * gain.variance,
                with_level: (1.0 - own) * level_sd,
            }
        };
        let beliefs = self.arms.iter().zip(&prior.gains).enumerate().map(belief).collect();
        Posterior { beliefs, noise, freedom }
    }

    /// Adds a reward. If a change of the path is detected, drops the data except the recent rewards of this arm, and
    /// returns the reason.
    pub fn learn(&mut self, arm: ArmId, reward: f64, prior: &Prior, default: ArmId, now: Time) -> Option<String> {
        let is_first = self.seen() < MIN_COUNT;
        let posterior = self.posterior(prior, default, 1.0);
        let belief = posterior.beliefs[arm.index()];
        let doubt = belief.variance + belief.with_level * belief.with_level;
        let sd = libm::sqrt(doubt + posterior.noise);
        let distance = if is_first { 0.0 } else { ((reward - belief.mean) / sd).clamp(-OUTLIER, OUTLIER) };
        let counted = if is_first { reward } else { belief.mean + distance * sd };

        self.at = now;
        let rewards = &mut self.arms[arm.index()];
        rewards.lately =
            if rewards.n < MIN_COUNT { reward } else { rewards.lately + LATELY * (reward - rewards.lately) };
        rewards.n += 1.0;
        rewards.mean += (counted - rewards.mean) / rewards.n;
        if is_first {
            return None;
        }
        self.freedom += 1.0;
        self.scatter += (counted - belief.mean) * (counted - belief.mean) * posterior.noise / (sd * sd);
        self.rising = (self.rising + distance - CUSUM_SLACK).max(0.0);
        self.falling = (self.falling - distance - CUSUM_SLACK).max(0.0);
        let way = if self.falling > CUSUM_LIMIT {
            "worse"
        } else if self.rising > CUSUM_LIMIT {
            "better"
        } else {
            return None;
        };
        self.restart(arm);
        Some(format!("connections have become {way} than the learned state predicts"))
    }

    /// Drops the data, but not the published estimates.
    pub fn drop_all(&mut self) {
        self.arms.iter_mut().for_each(|rewards| *rewards = Rewards::default());
        (self.scatter, self.freedom, self.rising, self.falling) = (0.0, 0.0, 0.0, 0.0);
    }

    /// Drops the data except the recent mean of `arm`.
    fn restart(&mut self, arm: ArmId) {
        let lately = self.arms[arm.index()].lately;
        self.drop_all();
        self.arms[arm.index()] = Rewards { n: LATELY_COUNT, mean: lately, lately };
    }

    /// Replaces the published estimates with those of the current data. Returns the previous and the new ones.
    pub fn republish(&mut self, default: ArmId) -> (Vec<GainEstimate>, Vec<GainEstimate>) {
        let reference = self.arms[default.index()];
        let noise = ((NOISE_FREEDOM * NOISE + self.scatter) / (NOISE_FREEDOM + self.freedom)).max(MIN_NOISE);
        let tell = |(number, arm): (usize, &Rewards)| {
            if number == default.index() || arm.n < MIN_COUNT || reference.n < MIN_COUNT {
                return GainEstimate::default();
            }
            // The difference of the means of n and m connections has a variance of noise (n + m) / (n m).
            let pairs = arm.n * reference.n / (arm.n + reference.n);
            GainEstimate {
                weight: pairs / (pairs + 1.0),
                gain: arm.mean - reference.mean,
                variance: noise / pairs,
                noise,
            }
        };
        let now: Vec<GainEstimate> = self.arms.iter().enumerate().map(tell).collect();
        (std::mem::replace(&mut self.published, now.clone()), now)
    }
}
