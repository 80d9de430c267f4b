//! Thresholds: the policy files that studies export, and people write.
//!
//! What a destination is like is taken from connections of loss-based arms to it, as docs/reference/policy.md says: BBR causes most
//! of its losses itself, and fills no queue. A condition about something that is not known is not met.

use crate::arm::{ArmId, Arms};
use crate::event::Event;
use crate::outcome::{Class, Outcome};
use crate::policy::{Explanation, Policy, bare_views};
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::{Span, Time};

/// Version of the policy file that is understood.
const FORMAT: u32 = 1;

/// How many connections back a destination's losses count.
const MEMORY: f64 = 50.0;

/// Segments that have to be seen before a ratio of losses is one.
const LEAST_SEGMENTS: f64 = 200.0;

/// A quantity that rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Room of the bottleneck's queue, in bandwidth-delay products.
    BufferBdp,
    /// Segments retransmitted over segments sent.
    LossRatio,
    /// Smallest round-trip time, in seconds.
    RttS,
}

/// A range, its ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The lower end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl Range {
    fn has(&self, value: f64) -> bool {
        self.at_least.is_none_or(|end| value >= end) && self.at_most.is_none_or(|end| value <= end)
    }
}

/// A rule of a policy file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Short name.
    pub name: String,
    /// Congestion control.
    pub algorithm: String,
    /// What has to be so, all of it.
    pub when: BTreeMap<Condition, Range>,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// A policy file, as far as a server goes by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct File {
    format: u32,
    default: String,
    #[serde(default)]
    rules: Vec<Rule>,
}

/// A policy file that cannot be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// It is of another version.
    #[error("format: found {0}, expected {FORMAT}; write the policy again with this version of thalweg")]
    Format(u32),
    /// It names an algorithm that is not among the arms.
    #[error("{place}: found `{name}`, expected one of the arms {arms}; allow it, or change the rule")]
    NoArm {
        /// Where.
        place: String,
        /// The algorithm.
        name: String,
        /// Those that there are.
        arms: String,
    },
    /// It is no policy file.
    #[error("{0}; docs/reference/policy.md describes the file")]
    Form(String),
}

/// Thresholds on what is known of a destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rules {
    arms: Arms,
    default: ArmId,
    rules: Vec<(ArmId, Rule)>,
    seen: BTreeMap<Prefix, Seen>,
}

/// What is known of a destination.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Seen {
    segments: f64,
    retransmits: f64,
    rtt_min: Option<Span>,
    /// The largest of recent connections: it slowly falls, so that a smaller queue is noticed.
    buffer_bdp: Option<f64>,
}

impl Rules {
    /// Rules of a policy file, which somebody has read into a value: it is written in TOML.
    ///
    /// # Errors
    /// If it is no policy file, is of another version, or names an algorithm that is not among the arms.
    pub fn from_value(arms: Arms, file: serde_json::Value) -> Result<Rules, RulesError> {
        let file: File = serde_json::from_value(file).map_err(|error| RulesError::Form(error.to_string()))?;
        if file.format != FORMAT {
            return Err(RulesError::Format(file.format));
        }
        let find = |place: String, name: &str| {
            let names: Vec<&str> = arms.iter().map(|(_, arm)| arm.name.as_str()).collect();
            arms.find(name).ok_or(RulesError::NoArm { place, name: name.to_owned(), arms: names.join(", ") })
        };
        let default = find("default".to_owned(), &file.default)?;
        let found = |rule: Rule| -> Result<(ArmId, Rule), RulesError> {
            let arm = find(format!("rules.{}.algorithm", rule.name), &rule.algorithm)?;
            Ok((arm, rule))
        };
        let rules = file.rules.into_iter().map(found).collect::<Result<_, _>>()?;
        Ok(Rules { arms, default, rules, seen: BTreeMap::new() })
    }

    /// The rule that decides, if one applies.
    fn rule(&self, prefix: Prefix) -> Option<&(ArmId, Rule)> {
        let seen = self.seen.get(&prefix)?;
        self.rules.iter().find(|(_, rule)| {
            rule.when.iter().all(|(&condition, range)| seen.value(condition).is_some_and(|value| range.has(value)))
        })
    }
}

impl Seen {
    fn value(&self, condition: Condition) -> Option<f64> {
        match condition {
            Condition::BufferBdp => self.buffer_bdp,
            Condition::LossRatio => (self.segments >= LEAST_SEGMENTS).then(|| self.retransmits / self.segments),
            Condition::RttS => self.rtt_min.map(Span::as_secs_f64),
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
        // A queue shows once it has been filled, which a loss tells.
        let has_filled = outcome.retransmits.0 > 0;
        if let (Some(least), Some(most), true) =
            (outcome.rtt_min, outcome.rtt_max, has_filled && !outcome.is_app_limited)
        {
            let found = most.saturating_sub(least).0 as f64 / least.0.max(1) as f64;
            self.buffer_bdp = Some(self.buffer_bdp.map_or(found, |known| found.max(keep * known)));
        }
    }
}

impl Policy for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn observe(&mut self, outcome: &Outcome, _now: Time) -> Vec<Event> {
        let is_loss_based = self.arms.arm(outcome.arm).is_loss_based;
        self.seen.entry(outcome.prefix).or_default().add(outcome, is_loss_based);
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, _now: Time) -> Weights {
        Weights::only(&self.arms, self.rule(prefix).map_or(self.default, |(arm, _)| *arm))
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let sentence = match self.rule(prefix) {
            Some((_, rule)) => format!("{} by the rule `{}`: {}", rule.algorithm, rule.name, rule.reason),
            None => format!("{} because no rule applies.", self.arms.arm(self.default).name),
        };
        Explanation { prefix, sentence, arms: bare_views(&self.arms, &weights) }
    }
}
