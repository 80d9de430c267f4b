//! Chooses the congestion control algorithm of the next connection to a destination, and tests whether the choice is
//! beneficial.
//!
//! An [`Outcome`] describes a closed connection. A [`Policy`] turns outcomes into [`Weights`]: the probability with
//! which each algorithm (an [`Arm`]) is drawn for the next connection to a [`Prefix`].
//!
//! ```text
//!   Outcome ──► Guard ──► Policy          learns
//!                 │          │
//!   Weights ◄─────┴──────────┘            hold-out, withdrawal and the state of the host override the policy
//! ```
//!
//! - [`Guard`] wraps a policy. It keeps a share of connections at the system's default, compares the others with them,
//!   and restores the default where the others are worse.
//! - [`AnyPolicy`] is a policy by name: [`Bayes`], which is the default, and others.
//! - [`Objective`] assigns a reward to each outcome.
//! - [`simulate`] simulates policies on a population of paths.
//!
//! This crate reads no clock and does no I/O, and its random numbers come from seeded generators, so that the same
//! outcomes at the same times yield the same weights. Times count from the UNIX epoch, because learned state survives
//! restarts.
//!
//! ```
//! use thalweg_policy::{AnyPolicy, Arms, Bayes, Class, Guard, Objective, Prefix};
//! use thalweg_units::Time;
//!
//! let arms = Arms::named(&["cubic", "bbr"], "cubic")?;
//! let bayes = Bayes::new(arms.clone(), Objective::default(), Default::default());
//! let guard = Guard::new(arms, AnyPolicy::Bayes(bayes), Objective::default(), Default::default());
//! let weights = guard.weights("192.0.2.0/24".parse::<Prefix>()?, Class::default(), Time::ZERO);
//! assert_eq!(weights.holdout(), 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arm;
mod catalog;
mod guard;
mod math;
mod objective;
mod outcome;
mod places;
mod policies;
mod policy;
mod policy_event;
mod prefix;
pub mod simulate;
mod snapshot;
mod weights;

pub use arm::{Arm, ArmId, Arms, ArmsError, MAX_ARMS};
pub use catalog::AnyPolicy;
pub use guard::{Account, ArmAccount, Difference, Guard, GuardSettings, Host};
pub use objective::Objective;
pub use outcome::{Class, Direction, Group, Loss, Outcome, Size};
pub use places::Places;
pub use policies::{
    Ab, AbUnit, Attributes, Bayes, BayesSettings, Bpftune, BpftuneKey, BpftuneSettings, Greedy, GreedySettings, Rules,
    RulesError, Static, Ucb, UcbSettings,
};
pub use policy::{ArmView, Explanation, Interval, Policy};
pub use policy_event::{Change, PolicyEvent};
pub use prefix::{Family, Prefix, PrefixError, Tree};
pub use snapshot::{FORMAT, RestoreError, Snapshot};
pub use weights::Weights;
