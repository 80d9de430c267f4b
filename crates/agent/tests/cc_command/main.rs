//! Tests `thalweg-agent cc` on this machine's own kernel and in guests.

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
#[path = "../common/registration.rs"]
mod registration;
mod stage;
mod transfers;
mod tuned;
