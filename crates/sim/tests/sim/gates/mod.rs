//! Tests of results from textbooks and papers about the algorithms, most with a control whose result must differ.
//!
//! `cargo test --release -p thalweg-sim --test sim gates -- --nocapture` prints the measurements;
//! docs/reference/textbook-gates.md lists them with sources and tolerances.
//!
//! | file | topic |
//! | --- | --- |
//! | `windows` | Windows of CUBIC and Reno, compared with RFC 9438's tables |
//! | `cliff` | Loss at which BBR collapses |
//! | `probe_rtt` | Times at which BBR probes for the round-trip time |
//! | `standing_queue` | Standing queue of several BBR flows |
//! | `convergence` | Share of a late flow |
//! | `rtt_fairness` | Shares of two flows with different round-trip times |
//! | `buffers` | Effects of loss, buffers and the receive window on each algorithm |
//! | `queues` | Guarantees of queue disciplines and ECN that a drop-tail queue lacks |
//! | `prague` | Queueing delay, balance with CUBIC and RTT dependence of Prague, compared with L4S |
//! | `pipe`, `textbook` | A path that drops every Nth packet; controllers in floating point |

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
