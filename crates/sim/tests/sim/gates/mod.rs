//! Results of textbooks and papers about the algorithms, each with a control that differs.
//!
//! `cargo test --release -p thalweg-sim --test sim gates -- --nocapture` prints what is measured;
//! docs/reference/textbook-gates.md lists it with sources and tolerances. Every random experiment has several seeds.
//!
//! | file | question |
//! | --- | --- |
//! | `windows` | Have CUBIC and Reno the windows of RFC 9438's tables? |
//! | `cliff` | At which loss does BBR collapse? |
//! | `probe_rtt` | When does BBR probe for the round-trip time? |
//! | `standing_queue` | How much do several BBR flows queue? |
//! | `convergence` | Does a late flow get its share? |
//! | `rtt_fairness` | Which of two flows with unlike round-trip times wins? |
//! | `buffers` | How do loss, buffers and the receive window affect each? |
//! | `queues` | What do queue disciplines and ECN keep that a drop-tail queue does not? |
//! | `prague` | Are queueing delay, balance with CUBIC and dependence on the RTT of Prague those of L4S? |
//! | `pipe`, `textbook` | A path that drops every Nth packet; controllers in floating point. |

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

/// Share of an ideal link that payload can take: 1448 of 1500 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;
