//! Scores of a policy in the simulation.

use serde::Serialize;
use std::collections::BTreeMap;

/// Score of a policy in one world. Held-out connections count only in `regret_with_holdout`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Mean regret of connections that were not held out.
    pub regret: f64,
    /// Mean regret of all connections.
    pub regret_with_holdout: f64,
    /// Mean regret while the host was short of CPU; `None` without such connections.
    pub regret_while_busy: Option<f64>,
    /// Share of connections that used an arm within 5 % of the best.
    pub good: f64,
    /// Loss of throughput of a competing connection, relative to its throughput next to CUBIC; mean over large
    /// transfers.
    pub harm: f64,
    /// Number of connections until the choice was good, of destinations where the default is not good.
    pub settled: Vec<f64>,
    /// Number of connections after a change until the choice was good, of destinations whose previous best arm is no
    /// longer good.
    pub settled_after_change: Vec<f64>,
    /// Number of connections, and the sum of their regret, by the kind of path.
    pub by_kind: Vec<(f64, f64)>,
}

/// The median and the worst decile of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The value at which the worst tenth begins.
    pub worst_decile: f64,
}

/// Scores of a policy in several worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the policy.
    pub policy: String,
    /// Settings of the policy.
    pub settings: serde_json::Value,
    /// Number of settings from which these were chosen.
    pub tuned_among: usize,
    /// Number of worlds.
    pub seeds: usize,
    /// Regret in per cent of the best arm's result, without held-out connections.
    pub regret_percent: Spread,
    /// Regret of all connections, in per cent.
    pub regret_with_holdout_percent: Spread,
    /// Regret while the host was short of CPU, in per cent, over worlds where it was.
    pub regret_while_busy_percent: Option<Spread>,
    /// Percentage of connections that used an arm within 5 % of the best.
    pub good_percent: Spread,
    /// [`Score::harm`] in per cent.
    pub harm_percent: Spread,
    /// Spread of [`Score::settled`] over the destinations of all worlds.
    pub settled: Option<Spread>,
    /// Spread of [`Score::settled_after_change`].
    pub settled_after_change: Option<Spread>,
    /// Regret by kind of path, in per cent, over all worlds.
    pub by_kind_percent: BTreeMap<String, f64>,
}

impl Spread {
    /// Returns the spread of numbers of which large ones are bad; `None` if `numbers` is empty.
    pub fn of(mut numbers: Vec<f64>) -> Option<Spread> {
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let below = numbers[place as usize];
            let above = numbers[(place as usize + 1).min(last)];
            below + (place - libm::floor(place)) * (above - below)
        };
        Some(Spread { median: at(0.5), worst_decile: at(0.9) })
    }

    fn negated(self) -> Spread {
        Spread { median: -self.median, worst_decile: -self.worst_decile }
    }
}

impl Summary {
    /// Summarizes the scores of a policy.
    ///
    /// # Panics
    /// If `scores` is empty.
    pub fn of(
        policy: &str,
        settings: serde_json::Value,
        tuned_among: usize,
        scores: &[Score],
        kinds: &[&str],
    ) -> Summary {
        let spread = |value: &dyn Fn(&Score) -> f64| Spread::of(scores.iter().map(value).collect()).expect("a score");
        let all = |value: &dyn Fn(&Score) -> &[f64]| Spread::of(scores.iter().flat_map(value).copied().collect());
        let busy = scores.iter().filter_map(|score| score.regret_while_busy).map(percent).collect();
        let by_kind = |(number, name): (usize, &&str)| {
            let of = |score: &Score| score.by_kind.get(number).copied().unwrap_or_default();
            let (n, sum) = scores.iter().map(of).fold((0.0, 0.0), |sum, score| (sum.0 + score.0, sum.1 + score.1));
            ((*name).to_owned(), percent(if n > 0.0 { sum / n } else { 0.0 }))
        };
        Summary {
            policy: policy.to_owned(),
            settings,
            tuned_among,
            seeds: scores.len(),
            regret_percent: spread(&|score| percent(score.regret)),
            regret_with_holdout_percent: spread(&|score| percent(score.regret_with_holdout)),
            regret_while_busy_percent: Spread::of(busy),
            good_percent: spread(&|score| -100.0 * score.good).negated(),
            harm_percent: spread(&|score| 100.0 * score.harm),
            settled: all(&|score| &score.settled),
            settled_after_change: all(&|score| &score.settled_after_change),
            by_kind_percent: kinds.iter().enumerate().map(by_kind).collect(),
        }
    }
}

/// Converts a regret (a difference of logarithms) to the loss relative to the best result, in per cent.
fn percent(regret: f64) -> f64 {
    -100.0 * libm::expm1(-regret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_and_the_90th_percentile() {
        let spread = Spread::of((0..=10).rev().map(f64::from).collect()).unwrap();
        assert_eq!(spread, Spread { median: 5.0, worst_decile: 9.0 });
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
