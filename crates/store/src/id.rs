//! Identifiers of experiments.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use thalweg_plan::plan::{Capacity, Experiment};

/// Base name of an experiment's files: 16 hexadecimal digits, a hash of its inputs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Returns the id of `experiment` on an engine whose result version is `result_version`.
///
/// It is the start of the SHA-256 of a JSON array of the engine's name, the version, the experiment and the capacity
/// traces that it uses. The JSON is compact and its keys are sorted, so the order of the fields of a struct is
/// irrelevant. A trace that `traces` lacks is hashed as `null`. A profile is identified by its name alone, which must
/// depend on its content.
pub fn experiment_id(
    engine: &str,
    result_version: &str,
    experiment: &Experiment,
    traces: &BTreeMap<String, Vec<u64>>,
) -> Id {
    let used: BTreeMap<&str, Option<&Vec<u64>>> = [&experiment.forward, &experiment.reverse]
        .into_iter()
        .filter_map(|link| match &link.capacity {
            Capacity::Trace { trace } => Some((trace.as_str(), traces.get(trace))),
            _ => None,
        })
        .collect();
    let mut value = serde_json::json!([engine, result_version, experiment, used]);
    value.sort_all_objects();
    let digest = Sha256::digest(value.to_string());
    Id(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}
