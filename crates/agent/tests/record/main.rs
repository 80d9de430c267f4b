//! Tests `thalweg-agent record` on this machine's own kernel and in guests.

mod bbr;
mod beginnings;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod detail;
mod endings;
mod forgotten;
mod kernels;
mod many;
#[path = "../common/kernels.rs"]
mod on_kernels;
mod refusals;
mod replaced;
mod rows;
mod ss;
mod stage;
mod traffic;
mod transfers;
mod trouble;
