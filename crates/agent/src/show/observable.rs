//! Requests to a recording agent, and the traits of the objects that answer them.

use super::snapshot::{OpenConnections, Snapshot};
use super::sorting::{Selection, SortBy};
use prometheus::proto::MetricFamily;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Requests that only an agent that chooses algorithms answers. A trait, because `show` does not depend on `tune`.
pub trait Tuning: Send + Sync {
    /// Returns the learned state, with at most `limit` destinations and changes.
    fn status(&self, limit: usize) -> Value;

    /// Explains the algorithms of connections to a prefix or an address.
    fn explain(&self, prefix: &str) -> Value;

    /// Returns the Prometheus metrics of the tuner.
    fn metrics(&self) -> Vec<MetricFamily>;
}

/// The recording agent, as a source of answers.
pub trait Observable: Send + Sync {
    /// Returns the state of recording.
    fn status(&self) -> Snapshot;

    /// Returns the part that chooses algorithms; `None` if the agent only records.
    fn tuning(&self) -> Option<Arc<dyn Tuning>> {
        None
    }

    /// Returns the recorded open connections of a new scan, sorted and limited by `selection`.
    fn open(&self, selection: &Selection) -> OpenConnections;
}

/// A request to the agent: one JSON line on its socket. The answer is one JSON line, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "get", rename_all = "snake_case")]
pub enum Request {
    /// Requests the state of recording. The answer is a [`Snapshot`].
    Status,
    /// Requests the open connections. The answer is [`OpenConnections`].
    Open {
        /// Sort key.
        #[serde(default)]
        sort: SortBy,
        /// Maximum number of connections.
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Requests the learned state.
    Tuning {
        /// Maximum number of destinations, and of changes.
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Requests an explanation of the algorithms of connections to a destination.
    Explain {
        /// An address or a prefix.
        prefix: String,
    },
}

fn default_limit() -> usize {
    1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_documented_json_lines() {
        let read = |line: &str| serde_json::from_str::<Request>(line).unwrap();
        assert_eq!(read(r#"{"get":"status"}"#), Request::Status);
        assert_eq!(read(r#"{"get":"open"}"#), Request::Open { sort: SortBy::Goodput, limit: 1000 });
        let sorted = read(r#"{"get":"open","sort":"min-rtt","limit":3}"#);
        assert_eq!(sorted, Request::Open { sort: SortBy::MinRtt, limit: 3 });
        assert_eq!(read(r#"{"get":"tuning"}"#), Request::Tuning { limit: 1000 });
        let explain = Request::Explain { prefix: "192.0.2.7".to_owned() };
        assert_eq!(read(r#"{"get":"explain","prefix":"192.0.2.7"}"#), explain);
        assert_eq!(serde_json::to_string(&sorted).unwrap(), r#"{"get":"open","sort":"min-rtt","limit":3}"#);
    }
}
