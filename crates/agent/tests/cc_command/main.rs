//! `thalweg-agent cc` on this machine's own kernel: what is registered, what connections get, what is left.

#[path = "../common/mod.rs"]
mod common;
mod engine;
mod guests;
mod keeping;
mod kernels;
mod lossy;
#[path = "../common/kernels.rs"]
mod on_kernels;
mod refusals;
mod stage;
mod transfers;
mod tuned;
