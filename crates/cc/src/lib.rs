//! Congestion controllers.
//!
//! A controller decides how much data may be in flight, and at which rate it is sent. It is called on events, and
//! changes the connection's [`Window`]. It has no clock and no source of randomness of its own.
//!
//! Connection and controller divide the work as in Linux:
//!
//! - The connection owns the window, detects losses, and is in one of five [`CaState`]s. While it is in `Recovery` or
//!   `Cwr` it lowers cwnd by proportional rate reduction (RFC 6937), unless the controller
//!   [governs](Controller::governs_recovery) cwnd in every state, as BBR does.
//! - The controller sets the target of the reduction ([`Controller::ssthresh`]), and raises cwnd on ACKs
//!   ([`Controller::on_ack`]).
//!
//! | event | Linux calls it |
//! | --- | --- |
//! | [`Controller::on_established`] | `init` |
//! | [`Controller::on_packets_acked`] | `pkts_acked`, `in_ack_event` |
//! | [`Controller::on_ack`] | `cong_avoid`, `cong_control` |
//! | [`Controller::ssthresh`], [`Controller::ssthresh_on_mark`] | `ssthresh` |
//! | [`Controller::on_timeout`] | `cwnd_event(CA_EVENT_LOSS)` |
//! | [`Controller::on_state`] | `set_state` |
//! | [`Controller::on_lost`] | `skb_marked_lost` of the kernel that has BBRv3 |
//! | [`Controller::on_probe_repair`] | `cwnd_event(CA_EVENT_TLP_RECOVERY)` of that kernel |
//! | [`Controller::on_transmit_start`] | `cwnd_event(CA_EVENT_TX_START)` |
//! | [`Controller::undo`] | `undo_cwnd` |
//!
//! ```
//! use std::collections::BTreeMap;
//! let controller = thalweg_cc::build("cubic", &BTreeMap::new())?;
//! assert!(!controller.paces());
//! # Ok::<(), thalweg_cc::BuildError>(())
//! ```

mod aggregation;
mod bbr;
mod bbr3;
mod bbr_cpu;
mod bic;
mod catalog;
mod controller;
mod cubic;
mod dctcp;
mod fixed_point;
mod growth;
mod htcp;
mod illinois;
mod jiffies;
mod max_filter;
mod pacing;
mod param;
mod prague;
mod reno;
mod vegas;
mod wrapped;

pub use bbr::Word;
pub use catalog::{BuildError, CATALOG, Entry, bbr_words, build};
pub use controller::{Ack, CaState, Conn, Controller, EcnFeedback, LostSegment, RateSample, Window};
pub use jiffies::{Hz, Jiffies};
pub use param::Param;
