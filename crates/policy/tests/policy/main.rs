//! What the crate promises, from outside.

mod bayes;
mod guard;
mod made_up;
mod policies;
mod prefixes;
mod simulation;
mod snapshots;
mod weights;
