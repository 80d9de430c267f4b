//! A sequential test, valid at any time, of whether the policy's choice is worse or better than the default.
//!
//! The test bets against the hypothesis "no worse". The capital starts at 1. The difference `d` of each pair is scaled
//! and clipped to `f = d / (2 scale)` between -1 and 1, and multiplies the capital by `1 - b f`. If the policy is not
//! worse, `f` is at least as likely to be positive as to be negative by the same amount, so the expected capital does
//! not grow, for any betting fraction `b`. The probability that such a capital ever reaches `1 / alpha` is at most
//! `alpha` (Ville's inequality). Several fractions are used in parallel, each with an equal part of the capital; the
//! sum has the same bound. Mirrored bets test the hypothesis "no better".
//!
//! The probability that any test of a guard ever rejects "no worse" although it is true is at most `alpha`; the same
//! bound holds for "no better". The n-th test that is started has a level of `alpha / (n (n + 1))`, and these add up to
//! `alpha`.
//!
//! A path may change; capital that was lost while the policy was better would then have to be recovered first. So each
//! test is restarted after 64 pairs, then 128, and so on, and also after a withdrawal. The e-th epoch has a share of `1
//! / (e (e + 1))` of the level of the test.
//!
//! Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", J. R. Stat. Soc. B
//! (2024); Ramdas, Gruenwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid inference" (2023);
//! Robbins, "Statistical methods related to the law of the iterated logarithm" (1970) for the interval.

use crate::math::Moments;
use serde::{Deserialize, Serialize};
use std::fmt;
use thalweg_units::{Span, Time};

const FRACTIONS: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.7, 0.95];

/// Differences are clipped at this multiple of the scale.
const CUT: f64 = 2.0;

/// Number of pairs in the first epoch; each later one is twice as long as the previous one.
const FIRST_EPOCH: u64 = 64;

/// Parameter of Robbins' mixture, in units of the variance of a difference. Relative to an interval for a fixed number
/// of pairs, the interval is tightest at 8 to 9 times this number of pairs.
const TIGHTEST: f64 = 10.0;

/// A change in the result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    /// Treated connections were worse: the default is used until this time.
    Worse { until: Time },
    /// The withdrawal has ended.
    Resumed,
    /// Treated connections are significantly better.
    Better,
    /// Treated connections were significantly better, and are no longer.
    NoLongerBetter,
}

/// Gain of treated connections over held-out ones, as a difference of rewards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Number of pairs compared.
    pub pairs: u64,
    /// Mean difference: 0.1 is about a tenth of the time or of the rate.
    pub mean: f64,
    /// Lower bound of an interval that contains the true difference with a probability of about 95 %, at all times
    /// simultaneously.
    pub low: f64,
    /// Upper bound of that interval.
    pub high: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mean, low, high] = [self.mean, self.low, self.high].map(libm::exp);
        write!(out, "{mean:.2} times as good ({low:.2} to {high:.2}) in {} pairs", self.pairs)
    }
}

/// State of the test of a prefix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// Number of the test among those of the guard, from 1.
    rank: u64,
    /// From 1.
    epoch: u64,
    pairs_left: u64,
    against_no_worse: Capital,
    against_no_better: Capital,
    withdrawn_until: Option<Time>,
    is_better: bool,
    moments: Moments,
}

/// Logarithm of the capital for each fraction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Capital([f64; FRACTIONS.len()]);

impl Capital {
    /// Bets that `f`, between -1 and 1, is positive.
    fn bet(&mut self, f: f64) {
        for (log, fraction) in self.0.iter_mut().zip(FRACTIONS) {
            *log += libm::log1p(fraction * f);
        }
    }

    /// Returns the logarithm of the total capital, which starts at 0.
    fn log(&self) -> f64 {
        let most = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.0.iter().map(|log| libm::exp(log - most)).sum();
        most + libm::log(sum / FRACTIONS.len() as f64)
    }
}

impl Evidence {
    pub fn new(rank: u64) -> Evidence {
        Evidence {
            rank,
            epoch: 1,
            pairs_left: FIRST_EPOCH,
            against_no_worse: Capital::default(),
            against_no_better: Capital::default(),
            withdrawn_until: None,
            is_better: false,
            moments: Moments::default(),
        }
    }

    /// Returns the end of the withdrawal, if one is in effect.
    pub fn withdrawn_until(&self, now: Time) -> Option<Time> {
        self.withdrawn_until.filter(|&until| now < until)
    }

    /// Whether treated connections are significantly better.
    pub fn is_better(&self) -> bool {
        self.is_better
    }

    /// Adds a pair, and returns a change of the result, if any. The first pair after a withdrawal only starts the next
    /// epoch.
    pub fn add(&mut self, distance: f64, scale: f64, alpha: f64, now: Time, withdraw_for: Span) -> Option<Standing> {
        if self.withdrawn_until(now).is_some() {
            // All connections use the default.
            return None;
        }
        if self.withdrawn_until.take().is_some() {
            self.begin();
            self.moments = Moments::default();
            return Some(Standing::Resumed);
        }
        self.moments.add(distance);
        let f = (distance / (CUT * scale)).clamp(-1.0, 1.0);
        self.against_no_worse.bet(-f);
        self.against_no_better.bet(f);
        let needed = self.needed(alpha);
        if self.against_no_worse.log() >= needed {
            let until = Time(now.0.saturating_add(withdraw_for.0));
            self.withdrawn_until = Some(until);
            self.is_better = false;
            return Some(Standing::Worse { until });
        }
        if !self.is_better && self.against_no_better.log() >= needed {
            self.is_better = true;
            return Some(Standing::Better);
        }
        self.pairs_left -= 1;
        if self.pairs_left == 0 {
            // An advantage must be confirmed in each epoch: the capital against "no better" must have grown.
            let was_confirmed = self.against_no_better.log() > 0.0;
            self.begin();
            if self.is_better && !was_confirmed {
                self.is_better = false;
                return Some(Standing::NoLongerBetter);
            }
        }
        None
    }

    fn begin(&mut self) {
        self.epoch += 1;
        self.pairs_left = FIRST_EPOCH << (self.epoch - 1).min(32);
        self.against_no_worse = Capital::default();
        self.against_no_better = Capital::default();
    }

    /// Returns the logarithm of the capital at which the result is significant.
    fn needed(&self, alpha: f64) -> f64 {
        let parts = |n: u64| libm::log(n as f64) + libm::log(n as f64 + 1.0);
        parts(self.rank) + parts(self.epoch) - libm::log(alpha)
    }

    /// Returns the gain of treated connections over held-out ones since the last withdrawal; `None` below two pairs.
    pub fn difference(&self) -> Option<Difference> {
        let Moments { n, mean, scatter } = self.moments;
        if n < 2.0 {
            return None;
        }
        // Robbins' normal mixture, with the observed sum of squares instead of the variance.
        let (variance, alpha) = (scatter + scatter / n, 0.05);
        let tightest = TIGHTEST * (scatter / n).max(1e-9);
        let ratio = (variance + tightest) / tightest;
        let half = libm::sqrt((variance + tightest) * (libm::log(ratio) - 2.0 * libm::log(alpha))) / n;
        Some(Difference { pairs: n as u64, mean, low: mean - half, high: mean + half })
    }
}
