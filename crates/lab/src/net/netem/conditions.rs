//! Conditions of a link over time: merges the steps and the profile of the plan into one series per condition.

use std::collections::BTreeSet;
use thalweg_plan::plan::{Capacity, Link, Loss, Profile, ProfilePoint, Traces};
use thalweg_units::{Probability, Rate, Span};

/// Maximum number of times at which a profile may change a link, because each takes at least one run of `tc`.
const MAX_CHANGES: usize = 1000;

/// Values with their start times, in order of time.
type Series<T> = Vec<(Span, T)>;

#[derive(Debug)]
pub(super) struct Conditions {
    /// Rates, the first at 0 (for profiles, the module `refused` checks this); empty without a limit.
    pub rates: Series<Rate>,
    /// Propagation delays, the first at 0.
    pub delays: Series<Span>,
    /// Ratios of independent losses, the first at 0; empty without a profile, for other loss models, and if the ratio
    /// is always 0.
    pub losses: Series<Probability>,
}

impl Conditions {
    /// Returns the conditions of a link. `end` is the end of the experiment; `None` if it is not fixed.
    ///
    /// # Errors
    /// The reason why queue disciplines cannot implement the profile, as the end of a sentence about netem.
    pub fn new(link: &Link, traces: &Traces, end: Option<Span>) -> Result<Conditions, &'static str> {
        let mut conditions = Conditions { rates: Vec::new(), delays: Vec::new(), losses: Vec::new() };
        if let Capacity::Steps { steps } = &link.capacity {
            conditions.rates = steps.iter().map(|step| (Span(step.at_ns.0), step.rate_bps)).collect();
        }
        let profile = match &link.profile {
            Some(name) => Some(traces.profiles.get(name).ok_or("cannot find the profile in the plan")?),
            None => None,
        };
        let Some(profile) = profile else {
            conditions.delays.push((Span::ZERO, link.delay_ns));
            return Ok(conditions);
        };
        if matches!(link.capacity, Capacity::Profile {}) {
            conditions.rates = series(None, profile, end, |point| point.rate_bps)?;
        }
        conditions.delays = series(Some(link.delay_ns), profile, end, |point| point.delay_ns)?;
        if let Loss::Bernoulli { ratio } = link.loss {
            conditions.losses = series(Some(ratio), profile, end, |point| point.loss)?;
            if let [(_, only)] = conditions.losses.as_slice() {
                // A constant ratio needs a stage only if it is not zero.
                if *only == Probability::NEVER {
                    conditions.losses.clear();
                }
            }
        }
        let rates = conditions.rates.iter().map(|(at, _)| *at);
        let others_at = conditions.delays.iter().map(|(at, _)| *at).chain(conditions.losses.iter().map(|(at, _)| *at));
        let moments: BTreeSet<Span> = rates.chain(others_at).collect();
        if moments.len() > MAX_CHANGES + 1 { Err(TOO_MANY) } else { Ok(conditions) }
    }

    /// Returns the highest rate; `None` without a limit.
    pub fn fastest(&self) -> Option<Rate> {
        self.rates.iter().map(|(_, rate)| *rate).max()
    }

    /// Returns the rate at a time; `None` without a limit.
    pub fn rate_at(&self, time: Span) -> Option<Rate> {
        at(&self.rates, time)
    }

    /// Returns the propagation delay at a time.
    pub fn delay_at(&self, time: Span) -> Span {
        at(&self.delays, time).unwrap_or_default()
    }
}

const TOO_MANY: &str = "can change a link at most 1,000 times in an experiment";

fn at<T: Copy>(series: &[(Span, T)], time: Span) -> Option<T> {
    series.iter().rev().find(|(since, _)| *since <= time).map(|(_, value)| *value)
}

/// Returns the values of a profile until `end`; `first` applies before the first one.
fn series<T: Copy + PartialEq>(
    first: Option<T>,
    profile: &Profile,
    end: Option<Span>,
    value: impl Fn(&ProfilePoint) -> Option<T>,
) -> Result<Series<T>, &'static str> {
    let phases: Series<T> =
        profile.points.iter().filter_map(|point| Some((Span(point.at_ns.0), value(point)?))).collect();
    let mut series: Series<T> = first.map(|first| (Span::ZERO, first)).into_iter().collect();
    let is_varied = phases.windows(2).any(|pair| pair[0].1 != pair[1].1);
    let period = profile.period_ns.filter(|period| is_varied && *period > Span::ZERO);
    if period.is_some() && end.is_none() {
        return Err("cannot repeat a profile in an experiment without a duration");
    }
    let mut cycle = Span::ZERO;
    loop {
        for (since, value) in &phases {
            let at = cycle + *since;
            if end.is_some_and(|end| at >= end) && at > Span::ZERO {
                return Ok(series);
            }
            match series.last_mut() {
                Some((_, last)) if *last == *value => {}
                Some((last_at, last)) if *last_at == at => *last = *value,
                _ => series.push((at, *value)),
            }
            if series.len() > MAX_CHANGES + 1 {
                return Err(TOO_MANY);
            }
        }
        match period {
            Some(period) => cycle += period,
            None => return Ok(series),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Time;

    fn profile(period_ms: Option<u64>, delays_ms: &[(u64, u64)]) -> Profile {
        let point = |(at, delay): &(u64, u64)| ProfilePoint {
            at_ns: Time::ZERO + Span::from_millis(*at),
            rate_bps: None,
            delay_ns: Some(Span::from_millis(*delay)),
            loss: None,
        };
        Profile { period_ns: period_ms.map(Span::from_millis), points: delays_ms.iter().map(point).collect() }
    }

    fn delays(profile: &Profile, end_ms: Option<u64>) -> Result<Vec<(u64, u64)>, &'static str> {
        let end = end_ms.map(Span::from_millis);
        let delays = series(Some(Span::from_millis(7)), profile, end, |point| point.delay_ns)?;
        Ok(delays.into_iter().map(|(at, delay)| (at.0 / 1_000_000, delay.0 / 1_000_000)).collect())
    }

    #[test]
    fn a_profile_repeats_until_the_end_of_the_experiment() {
        let repeated = profile(Some(100), &[(0, 10), (40, 20)]);
        assert_eq!(delays(&repeated, Some(240)), Ok(vec![(0, 10), (40, 20), (100, 10), (140, 20), (200, 10)]));
        assert_eq!(delays(&profile(None, &[(0, 10), (40, 20)]), None), Ok(vec![(0, 10), (40, 20)]));
    }

    #[test]
    fn before_its_first_value_a_profile_uses_the_values_of_the_link() {
        assert_eq!(delays(&profile(None, &[(50, 10)]), None), Ok(vec![(0, 7), (50, 10)]));
    }

    #[test]
    fn a_profile_that_repeats_forever_or_changes_too_often_is_rejected() {
        let repeated = profile(Some(10), &[(0, 10), (5, 20)]);
        assert_eq!(delays(&repeated, None), Err("cannot repeat a profile in an experiment without a duration"));
        assert_eq!(delays(&repeated, Some(4_000)).map(|all| all.len()), Ok(800));
        assert_eq!(delays(&repeated, Some(6_000)), Err(TOO_MANY));
        assert_eq!(delays(&profile(Some(10), &[(0, 10), (5, 10)]), None), Ok(vec![(0, 10)]));
    }
}
