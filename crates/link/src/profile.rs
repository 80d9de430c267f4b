//! Delay and loss that change over time.

use crate::error::{LinkError, probability};
use thalweg_plan::plan;
use thalweg_units::{Probability, Span, Time};

#[derive(Clone, Copy, Debug)]
struct Phase<T> {
    at: Time,
    value: T,
}

/// A value that changes over time.
#[derive(Debug)]
pub(crate) struct Series<T> {
    phases: Box<[Phase<T>]>,
    period: Option<Span>,
}

impl<T: Copy> Series<T> {
    /// Returns the series of points that set the value; `None` if no point does.
    fn new(points: impl Iterator<Item = (Time, Option<T>)>, period: Option<Span>) -> Option<Series<T>> {
        let phases: Box<[Phase<T>]> = points.filter_map(|(at, value)| Some(Phase { at, value: value? })).collect();
        (!phases.is_empty()).then_some(Series { phases, period })
    }

    /// Returns the value at an instant; `None` before the first point in the first period.
    pub fn at(&self, now: Time) -> Option<T> {
        let within = self.period.map_or(now, |period| Time(now.0 % period.0));
        let after = self.phases.partition_point(|phase| phase.at <= within);
        let index = match (after, self.period) {
            (0, None) => return None,
            // Before its first point, a repeating profile has the value of the end of the previous period.
            (0, Some(period)) if now.0 >= period.0 => self.phases.len() - 1,
            (0, Some(_)) => return None,
            (after, _) => after - 1,
        };
        Some(self.phases[index].value)
    }
}

/// Delay and loss of a profile.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub delay: Option<Series<Span>>,
    pub loss: Option<Series<Probability>>,
}

impl Profile {
    /// Returns the profile that a link names; an empty one if the link has no profile.
    ///
    /// # Errors
    /// If the plan does not contain it, or its points or its period are invalid.
    pub fn new(config: &plan::Link, traces: &plan::Traces) -> Result<Profile, LinkError> {
        let Some(name) = &config.profile else { return Ok(Profile::default()) };
        let profile = find(name, traces)?;
        for point in &profile.points {
            if let Some(loss) = point.loss {
                probability("profile.points.loss", loss)?;
            }
        }
        let points = profile.points.iter();
        Ok(Profile {
            delay: Series::new(points.clone().map(|point| (point.at_ns, point.delay_ns)), profile.period_ns),
            loss: Series::new(points.map(|point| (point.at_ns, point.loss)), profile.period_ns),
        })
    }
}

/// Finds a profile and checks its times.
pub(crate) fn find<'a>(name: &str, traces: &'a plan::Traces) -> Result<&'a plan::Profile, LinkError> {
    let place = format!("profiles.{name}");
    let Some(profile) = traces.profiles.get(name) else {
        let hint = "add a profile of this name to the plan's `profiles`";
        return Err(LinkError::new("profile-missing", "profile", name, "the name of a profile", hint));
    };
    let hint = "write the points in order of time, the first at 0, with a period beyond the last one";
    let is_ordered = profile.points.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
    if profile.points.first().is_none_or(|first| first.at_ns != Time::ZERO) || !is_ordered {
        return Err(LinkError::new(
            "profile-not-sorted",
            place,
            "points out of order",
            "times that increase from 0",
            hint,
        ));
    }
    let last = profile.points[profile.points.len() - 1].at_ns;
    if profile.period_ns.is_some_and(|period| Time::ZERO + period <= last) {
        return Err(LinkError::new("profile-too-long", place, "a point beyond the period", "a later period", hint));
    }
    Ok(profile)
}
