//! Tests of the crate through its public interface.

mod bayes;
mod guard;
mod policies;
mod prefixes;
mod simulation;
mod snapshots;
mod synthetic;
mod weights;
