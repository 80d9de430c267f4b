//! Errors of link configurations.

use std::fmt::Display;
use thalweg_units::Probability;

/// An invalid configuration of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: found {found}, expected {expected}\nhint: {hint}")]
pub struct LinkError {
    /// Stable name of the error, such as `trace-not-sorted`.
    pub code: &'static str,
    /// The key within the plan's link, such as `capacity.steps[2].at_ns`, or the trace or profile, such as
    /// `traces.NAME`.
    pub place: String,
    /// The actual value.
    pub found: String,
    /// The expected value.
    pub expected: &'static str,
    /// How to fix the error.
    pub hint: &'static str,
}

impl LinkError {
    pub(crate) fn new(
        code: &'static str,
        place: impl Display,
        found: impl Display,
        expected: &'static str,
        hint: &'static str,
    ) -> LinkError {
        LinkError { code, place: place.to_string(), found: found.to_string(), expected, hint }
    }
}

/// Returns the probability if it is between 0 and 1; a value read from a file may be any number.
pub(crate) fn probability(place: &str, probability: Probability) -> Result<Probability, LinkError> {
    Probability::new(probability.as_f64()).ok_or_else(|| {
        LinkError::new(
            "not-a-probability",
            place,
            probability.as_f64(),
            "a probability from 0 to 1",
            "write per cent as a fraction: 1 % is 0.01",
        )
    })
}
