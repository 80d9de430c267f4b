//! A randomised comparison (A/B test): connections or destinations are randomly assigned to two groups.

use crate::arm::{ArmId, Arms};
use crate::outcome::{Class, Outcome};
use crate::policy::{Explanation, Policy, bare_views, percent};
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use serde::{Deserialize, Serialize};
use thalweg_units::Time;

/// Unit of random assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbUnit {
    /// Each connection is assigned separately; connections of both groups that share a queue interfere.
    Connection,
    /// Each destination is assigned once, and its connections use the same arm.
    Prefix,
}

/// Policy that compares one arm with the system's default in a randomised trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ab {
    arms: Arms,
    treatment: ArmId,
    share: f64,
    unit: AbUnit,
    seed: u64,
    pilot_until: Option<Time>,
}

impl Ab {
    /// Creates a policy in which this share of all units, from 0 to 1, uses the treatment.
    pub fn new(arms: Arms, treatment: ArmId, share: f64, unit: AbUnit, seed: u64) -> Ab {
        Ab { arms, treatment, share: share.clamp(0.0, 1.0), unit, seed, pilot_until: None }
    }

    /// Sets the end of the pilot, from which on all connections use the treatment.
    #[must_use]
    pub fn until(mut self, end: Time) -> Ab {
        self.pilot_until = Some(end);
        self
    }

    fn share(&self, prefix: Prefix, now: Time) -> f64 {
        if self.pilot_until.is_some_and(|end| now >= end) {
            return 1.0;
        }
        match self.unit {
            AbUnit::Connection => self.share,
            AbUnit::Prefix => f64::from(unit(prefix, self.seed) < self.share),
        }
    }
}

impl Policy for Ab {
    fn name(&self) -> &'static str {
        "ab"
    }

    fn observe(&mut self, _outcome: &Outcome, _now: Time) -> Vec<PolicyEvent> {
        Vec::new()
    }

    fn weights(&self, prefix: Prefix, _class: Class, now: Time) -> Weights {
        let share = self.share(prefix, now);
        let mut wishes = vec![0.0; self.arms.len()];
        wishes[self.arms.default().index()] += 1.0 - share;
        wishes[self.treatment.index()] += share;
        Weights::of(&wishes)
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let weights = self.weights(prefix, Class::default(), now);
        let name = &self.arms.arm(self.treatment).name;
        let share = percent(self.share(prefix, now));
        let sentence = match (self.pilot_until, self.unit) {
            _ if self.treatment == self.arms.default() => {
                format!("All connections keep the default, {name}: it is the treatment too, so nothing is compared.")
            }
            (Some(end), _) if now >= end => format!("The pilot has ended: {name} gets {share} of new connections."),
            (_, AbUnit::Connection) => format!("{name} gets {share} of new connections at random, for comparison."),
            (_, AbUnit::Prefix) => {
                format!(
                    "{name} gets {share} of the connections to {prefix}, by a permanent random assignment for \
                     comparison."
                )
            }
        };
        Explanation { prefix, sentence, arms: bare_views(&self.arms, &weights) }
    }
}

/// Returns a number in [0, 1) derived from a destination and a seed.
fn unit(prefix: Prefix, seed: u64) -> f64 {
    let text = prefix.to_string();
    let mixed = text.bytes().fold(seed, |sum, byte| SplitMix64::seed_from_u64(sum ^ u64::from(byte)).next_u64());
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}
