//! Requests to a recording agent, and the traits of those that answer them.

use super::snapshot::{OpenConnections, Snapshot};
use super::sorting::{Selection, SortBy};
use prometheus::proto::MetricFamily;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What an agent that chooses algorithms is asked beyond one that only records.
///
/// A trait although only `tune` implements it: `show` stands below `tune` and cannot name its types.
pub trait Tuning: Send + Sync {
    /// Returns what it has learned, with at most `limit` destinations.
    fn status(&self, limit: usize) -> Value;

    /// Why connections to a prefix, or an address, get what they get.
    fn explain(&self, prefix: &str) -> Value;

    /// Returns its metrics, for Prometheus.
    fn metrics(&self) -> Vec<MetricFamily>;
}

/// Who answers: the recording agent.
pub trait Observable: Send + Sync {
    /// How recording goes.
    fn status(&self) -> Snapshot;

    /// The part that chooses; none: it only records.
    fn tuning(&self) -> Option<Arc<dyn Tuning>> {
        None
    }

    /// The open connections, as they were when they were last looked at: as many as are selected.
    fn open(&self, selection: &Selection) -> OpenConnections;
}

/// A question to the agent: one JSON line on its socket. The answer is one JSON line too, and ends the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "get", rename_all = "snake_case")]
pub enum Request {
    /// How does recording go? The answer is a [`Snapshot`].
    Status,
    /// Which connections are open? The answer is [`OpenConnections`].
    Open {
        /// What stands first.
        #[serde(default)]
        sort: SortBy,
        /// At most how many.
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// What was learned of destinations, and what is chosen for them?
    Tuning {
        /// At most how many destinations, and changes.
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Why do connections to a destination get what they get?
    Explain {
        /// An address or a prefix.
        prefix: String,
    },
}

/// More than fit on any screen.
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
