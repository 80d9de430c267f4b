//! Tests of a path's stages through the crate's interface, in one program, which is compiled once.

mod accounts;
mod common;
mod configuration;
mod delay;
mod disciplines;
mod loss;
mod mahimahi;
mod queue;
mod rate;
