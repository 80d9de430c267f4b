//! Errors of an experiment.

/// Reason why an experiment did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller requested a stop.
    #[error("cancelled")]
    Cancelled,
    /// The experiment is inconsistent, or requests a feature that the simulator lacks.
    #[error("{place}: found {found}, expected {expected}")]
    Invalid {
        /// Key of the experiment in the plan, such as `flows.large.host`.
        place: String,
        /// The actual value.
        found: String,
        /// The expected value.
        expected: String,
    },
}

impl Error {
    pub(crate) fn link(name: &str, error: &thalweg_link::LinkError) -> Error {
        Error::invalid(format!("{name}.{}", error.place), &error.found, error.expected)
    }

    pub(crate) fn invalid(place: impl Into<String>, found: impl ToString, expected: impl Into<String>) -> Error {
        Error::Invalid { place: place.into(), found: found.to_string(), expected: expected.into() }
    }
}
