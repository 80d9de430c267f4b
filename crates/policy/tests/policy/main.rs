//! What the crate promises, from outside.

mod bayes;
mod guard;
mod synthetic;
mod policies;
mod prefixes;
mod simulation;
mod snapshots;
mod weights;
