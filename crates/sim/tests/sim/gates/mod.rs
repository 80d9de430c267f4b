//! Tests of results from textbooks and papers about the algorithms. docs/reference/textbook-gates.md lists them with
//! sources and tolerances.
//!
//! `cargo test --release -p thalweg-sim --test sim gates -- --nocapture` prints the measurements.

mod buffers;
mod cliff;
mod convergence;
mod pipe;
mod prague;
mod probe_rtt;
mod queues;
mod rtt_fairness;
mod standing_queue;
mod textbook;
mod windows;

/// Maximum share of the link rate that payload can use: 1448 of 1500 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;
