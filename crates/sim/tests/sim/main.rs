//! The simulator's tests, in a single program to reduce compile time.

mod apps;
mod conservation;
mod cpu;
mod ecn;
mod fuzz_plan;
mod gates;
mod golden;
mod offloads;
mod packets;
mod scenarios;
mod support;
mod two_way;
