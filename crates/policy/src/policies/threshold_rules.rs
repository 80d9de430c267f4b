//! Threshold rules, from policy files.
//!
//! Losses and the queue of a path are estimated from connections of loss-based arms (docs/reference/policy.md), because
//! those of BBR do not describe the path. A condition on a value that is unknown for a destination is false; a
//! condition on a value that is unknown for all destinations is an error.

use crate::arm::{ArmId, Arms};
use crate::outcome::{Class, Direction, Outcome};
use crate::places::Places;
use crate::policy::{Explanation, Policy, bare_views};
use crate::policy_event::PolicyEvent;
use crate::prefix::{Prefix, Tree};
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_units::{Span, Time};

/// Supported version of the policy file.
const FORMAT: u32 = 1;

/// Memory of a destination's losses and queue, in number of connections.
const MEMORY: f64 = 50.0;

/// Minimum number of segments for a loss ratio.
const MIN_SEGMENTS: f64 = 200.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Quantity {
    /// Capacity of the bottleneck's queue, in bandwidth-delay products.
    BufferBdp,
    /// Ratio of retransmitted segments to segments sent.
    LossRatio,
    /// Smallest round-trip time, in seconds.
    RttS,
}

/// A range, including its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    #[serde(default)]
    at_least: Option<f64>,
    #[serde(default)]
    at_most: Option<f64>,
}

impl Range {
    fn has(&self, value: f64) -> bool {
        self.at_least.is_none_or(|end| value >= end) && self.at_most.is_none_or(|end| value <= end)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Condition {
    /// The quantity is within the range.
    Within(Quantity, Range),
    /// The destination is within one of these networks.
    Networks(Vec<Prefix>),
    /// The connection was opened in one of these directions.
    Direction(Vec<Direction>),
    /// The destination's value in this column of the table of networks is one of these.
    Place(String, Vec<String>),
}

/// A rule that is applicable on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rule {
    name: String,
    algorithm: ArmId,
    when: Vec<Condition>,
    reason: String,
}

/// The parts of a policy file that the agent uses.
#[derive(Deserialize)]
struct File {
    format: u32,
    default: String,
    #[serde(default)]
    rules: Vec<FileRule>,
}

#[derive(Deserialize)]
struct FileRule {
    name: String,
    algorithm: String,
    when: BTreeMap<String, Value>,
    #[serde(default)]
    reason: String,
}

/// Attributes of this host and of networks, in addition to outcomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// Prefix lengths of destinations.
    pub tree: Tree,
    /// Properties of this host, such as `pop` and `machine`.
    pub host: BTreeMap<String, String>,
    /// Properties of networks, such as AS and country.
    pub places: Places,
}

/// A policy file that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// The version is unsupported.
    #[error("format: found {0}, expected {FORMAT}; create the policy again with this version of thalweg")]
    Format(u32),
    /// The file names an algorithm that is not among the arms.
    #[error("`{name}` in `{place}`, which is not among the algorithms to choose from ({arms})")]
    NoArm {
        /// Key path in the policy.
        place: String,
        /// The algorithm.
        name: String,
        /// The available arms.
        arms: String,
    },
    /// A condition with an invalid value.
    #[error("{place}: {why}; expected {expected}")]
    Condition {
        /// Key path in the policy.
        place: String,
        /// The error.
        why: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A condition on a value that is unknown when a connection opens.
    #[error(
        "{place}: this value is unknown when a connection opens; expected one of {known}, a column of a table of \
         networks, or a name that is set for this host; define it, or remove the rule"
    )]
    Unknowable {
        /// Key path in the policy.
        place: String,
        /// Available names.
        known: String,
    },
    /// The value is not a policy file.
    #[error("{0}; docs/reference/policy.md describes the file")]
    Form(String),
}

/// Threshold rules on the averages of a destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rules {
    arms: Arms,
    default: ArmId,
    rules: Vec<Rule>,
    #[serde(rename = "seen")]
    averages: BTreeMap<Prefix, Averages>,
    /// Not serialized, because they come from the settings.
    #[serde(skip)]
    attributes: Arc<Attributes>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Averages {
    segments: f64,
    retransmits: f64,
    rtt_min: Option<Span>,
    /// Maximum queue of connections, in BDPs. It decays, so that a smaller queue is detected.
    buffer_bdp: Option<f64>,
}

impl Rules {
    /// Creates the rules from a parsed policy file. Rules that exclude this host are omitted.
    ///
    /// # Errors
    /// If the policy file is invalid, or a rule cannot be applied here.
    pub fn from_value(arms: Arms, file: Value, attributes: Arc<Attributes>) -> Result<Rules, RulesError> {
        let file: File = serde_json::from_value(file).map_err(|error| RulesError::Form(error.to_string()))?;
        if file.format != FORMAT {
            return Err(RulesError::Format(file.format));
        }
        let find = |place: String, name: &str| {
            let names: Vec<&str> = arms.iter().map(|(_, arm)| arm.name.as_str()).collect();
            arms.find(name).ok_or(RulesError::NoArm { place, name: name.to_owned(), arms: names.join(", ") })
        };
        let default = find("default".to_owned(), &file.default)?;
        let mut rules = Vec::new();
        for FileRule { name, algorithm, when, reason } in file.rules {
            let algorithm = find(format!("rules.{name}.algorithm"), &algorithm)?;
            let conditions: Result<Vec<_>, _> = when
                .into_iter()
                .map(|(key, wanted)| attributes.condition(&format!("rules.{name}.when.{key}"), &key, wanted))
                .collect();
            let conditions = conditions?;
            // Conditions on attributes of the host have been evaluated.
            if conditions.iter().all(|condition| *condition != Evaluation::No) {
                let when = conditions.into_iter().filter_map(Evaluation::later).collect();
                rules.push(Rule { name, algorithm, when, reason });
            }
        }
        Ok(Rules { arms, default, rules, averages: BTreeMap::new(), attributes })
    }

    /// Returns the arm of destinations to which no rule applies.
    #[must_use]
    pub fn default_arm(&self) -> ArmId {
        self.default
    }

    /// Restores the averages of another instance; returns false if its rules or its default differ.
    pub(crate) fn restore_from(&mut self, other: Rules) -> bool {
        let is_same = self.default == other.default && self.rules == other.rules;
        if is_same {
            self.averages = other.averages;
        }
        is_same
    }

    fn rule(&self, prefix: Prefix, class: Class) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.when.iter().all(|condition| self.is_met(condition, prefix, class)))
    }

    fn is_met(&self, condition: &Condition, prefix: Prefix, class: Class) -> bool {
        match condition {
            Condition::Within(quantity, range) => self
                .averages
                .get(&prefix)
                .and_then(|averages| averages.value(*quantity))
                .is_some_and(|value| range.has(value)),
            Condition::Networks(networks) => networks.iter().any(|network| network.has(prefix)),
            Condition::Direction(directions) => directions.contains(&class.direction),
            Condition::Place(column, names) => {
                self.attributes.places.value(prefix, column).is_some_and(|value| names.iter().any(|name| name == value))
            }
        }
    }
}

/// Result of evaluating a condition when the file is read.
#[derive(Clone, Debug, PartialEq)]
enum Evaluation {
    Yes,
    No,
    Later(Condition),
}

impl Evaluation {
    fn later(self) -> Option<Condition> {
        match self {
            Evaluation::Later(condition) => Some(condition),
            Evaluation::Yes | Evaluation::No => None,
        }
    }
}

impl Attributes {
    fn condition(&self, place: &str, key: &str, wanted: Value) -> Result<Evaluation, RulesError> {
        let error = |why: String, expected| RulesError::Condition { place: place.to_owned(), why, expected };
        let quantity: Result<Quantity, _> = serde_json::from_value(Value::String(key.to_owned()));
        if let Ok(quantity) = quantity {
            let range = serde_json::from_value(wanted)
                .map_err(|cause| error(cause.to_string(), "a range such as { at_least = 0.01, at_most = 0.1 }"))?;
            return Ok(Evaluation::Later(Condition::Within(quantity, range)));
        }
        let is_named = ["prefix", "direction"].contains(&key) || self.host.contains_key(key);
        if !is_named && !self.places.columns().any(|column| column == key) {
            return Err(RulesError::Unknowable { place: place.to_owned(), known: self.names().join(", ") });
        }
        let names: Vec<String> = serde_json::from_value(wanted)
            .map_err(|cause| error(cause.to_string(), "a list of names such as [\"one\", \"another\"]"))?;
        match key {
            "prefix" => {
                let network = |name: String| match name.parse::<Prefix>() {
                    Ok(network) if self.tree.leaf_of(network) != network => Err(error(
                        format!("{network} is smaller than the destination prefix {}", self.tree.leaf_of(network)),
                        "a network of this size or larger",
                    )),
                    Ok(network) => Ok(network),
                    Err(cause) => Err(error(cause.to_string(), "networks")),
                };
                Ok(Evaluation::Later(Condition::Networks(names.into_iter().map(network).collect::<Result<_, _>>()?)))
            }
            "direction" => {
                let direction = |name: String| {
                    serde_json::from_value(Value::String(name))
                        .map_err(|cause| error(cause.to_string(), "\"in\" or \"out\""))
                };
                Ok(Evaluation::Later(Condition::Direction(names.into_iter().map(direction).collect::<Result<_, _>>()?)))
            }
            _ => Ok(match self.host.get(key) {
                Some(own) if names.contains(own) => Evaluation::Yes,
                Some(_) => Evaluation::No,
                None => Evaluation::Later(Condition::Place(key.to_owned(), names)),
            }),
        }
    }

    fn names(&self) -> Vec<&str> {
        let own = ["buffer_bdp", "loss_ratio", "rtt_s", "prefix", "direction"];
        own.into_iter().chain(self.host.keys().map(String::as_str)).chain(self.places.columns()).collect()
    }
}

impl Averages {
    fn value(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::BufferBdp => self.buffer_bdp,
            Quantity::LossRatio => (self.segments >= MIN_SEGMENTS).then(|| self.retransmits / self.segments),
            Quantity::RttS => self.rtt_min.map(Span::as_secs_f64),
        }
    }

    fn add(&mut self, outcome: &Outcome, is_loss_based: bool) {
        if let Some(rtt) = outcome.rtt_min {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        if !is_loss_based {
            return;
        }
        let keep = 1.0 - 1.0 / MEMORY;
        self.segments = keep * self.segments + outcome.segments.0 as f64;
        self.retransmits = keep * self.retransmits + outcome.retransmits.0.min(outcome.segments.0) as f64;
        // The maximum RTT shows the queue size if the queue has been full, which a loss indicates.
        let has_filled = outcome.retransmits.0 > 0;
        if let (Some(least), Some(most), true) =
            (outcome.rtt_min, outcome.rtt_max, has_filled && !outcome.is_app_limited)
        {
            let buffer_bdp = most.saturating_sub(least).0 as f64 / least.0.max(1) as f64;
            self.buffer_bdp = Some(self.buffer_bdp.map_or(buffer_bdp, |previous| buffer_bdp.max(keep * previous)));
        }
    }
}

impl Policy for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        let is_loss_based = self.arms.arm(outcome.arm).is_loss_based;
        self.averages.entry(outcome.prefix).or_default().add(outcome, is_loss_based);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, class: Class, _now: Time) -> Weights {
        Weights::only(&self.arms, self.rule(prefix, class).map_or(self.default, |rule| rule.algorithm))
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let name = &self.arms.arm(weights.most()).name;
        let sentence = match self.rule(prefix, Class::default()) {
            Some(rule) => format!("{name} by the rule `{}`: {}", rule.name, rule.reason),
            None => format!("{name} because no rule applies."),
        };
        Explanation { prefix, sentence, arms: bare_views(&self.arms, &weights) }
    }
}
