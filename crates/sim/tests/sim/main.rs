//! The simulator's tests, in a single program, because each program compiles the simulator again.

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
