//! Tests `thalweg-agent tune` on this machine's own kernel and in guests.

mod alone;
mod choosing;
#[allow(unused_imports, reason = "some of it is for other tests")]
#[path = "../common/mod.rs"]
mod common;
mod kernels;
mod loaded;
#[path = "../common/kernels.rs"]
mod on_kernels;
mod refused;
#[path = "../common/registration.rs"]
mod registration;
mod reloading;
#[allow(dead_code, reason = "some of it is for the tests of `record`")]
#[path = "../record/rows.rs"]
mod rows;
#[allow(dead_code, reason = "some of it is for the tests of `record`")]
#[path = "../record/stage.rs"]
mod stage;
mod together;
#[allow(dead_code, reason = "some of it is for the tests of `record`")]
#[path = "../record/traffic.rs"]
mod traffic;
mod tuning;
mod untouched;
