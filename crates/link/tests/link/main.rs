//! Tests of the stages of a path through the crate's public interface, in a single program to reduce compile time.

mod accounts;
mod common;
mod configuration;
mod delay;
mod disciplines;
mod loss;
mod mahimahi;
mod queue;
mod rate;
