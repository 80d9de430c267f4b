//! What the crate promises, from outside.

mod bayes;
mod guard;
mod policies;
mod prefixes;
mod simulation;
mod snapshots;
mod synthetic;
mod weights;
