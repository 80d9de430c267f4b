//! A policy in the simulation, with or without the guard.

use crate::arm::ArmId;
use crate::catalog::AnyPolicy;
use crate::guard::{Guard, Host};
use crate::outcome::{Class, Loss, Outcome};
use crate::policy::Policy;
use crate::policy_event::PolicyEvent;
use crate::prefix::Prefix;
use crate::weights::Weights;
use serde_json::Value;
use thalweg_units::Time;

/// A policy with its settings, ready to be simulated.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Name in tables.
    pub name: String,
    /// The settings that are reported with the score.
    pub settings: Value,
    pub(super) player: Player,
}

#[derive(Clone, Debug)]
pub(super) enum Player {
    Bare(Box<AnyPolicy>),
    Guarded(Box<Guard>),
}

impl Contender {
    /// Returns a player without learned state.
    pub(super) fn player(&self) -> Player {
        self.player.clone()
    }
}

impl Player {
    pub fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent> {
        match self {
            Player::Bare(policy) => policy.observe(outcome, now),
            Player::Guarded(guard) => guard.observe(outcome, now),
        }
    }

    pub fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights {
        match self {
            Player::Bare(policy) => policy.weights(prefix, class, now),
            Player::Guarded(guard) => guard.weights(prefix, class, now),
        }
    }

    pub fn set_host(&mut self, host: Host, now: Time) {
        if let Player::Guarded(guard) = self {
            guard.set_host(host, now);
        }
    }

    pub fn on_loss(&self, loss: &Loss, now: Time) -> Option<ArmId> {
        match self {
            Player::Bare(policy) => policy.on_loss(loss),
            Player::Guarded(guard) => guard.on_loss(loss, now),
        }
    }

    /// Whether the policy is bpftune, which switches connections with many losses to BBR, without the guard.
    pub fn moves_lossy_connections(&self) -> bool {
        matches!(self, Player::Bare(policy) if matches!(**policy, AnyPolicy::Bpftune(_)))
    }
}
