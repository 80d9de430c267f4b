//! Bulk flows made by iperf3 instead of our own generator, for comparison with what was published with it.
//!
//! Each flow is one `iperf3 -c` with as many streams as the flow has copies, and one `iperf3 -s -1` at the receiver.
//! What a row means differs from our own generator's:
//! - `start` is when the flow's data connection was first seen established, to a millisecond: iperf3 negotiates for a
//!   few round trips on a connection of its own before. `end` is that and the seconds that iperf3 counted, the longer
//!   of its sender's and its receiver's. So the handshake is not in the completion time.
//! - a size is complete when iperf3 says that all was sent; it sends whole blocks, so that up to 1/100000 more may
//!   leave.
//! - a flow that is stopped is interrupted there: what its socket holds is not sent any more. Its acknowledged bytes
//!   are the kernel's at that moment.
//! - mean, smallest round-trip time and retransmissions are iperf3's; its retransmissions count the SYN's, too.
//!   Segments, and quantiles of round-trip times, come from our samples, up to one interval old.
//!
//! Left out, because iperf3 has it not: gaps, arrivals, requests, several sizes, a size for each of several copies.

mod client;
mod plan;
mod report;
mod server;

pub(super) use client::send;
pub(super) use server::serve;

use crate::error::Error;
use std::io;

/// The error when iperf3 cannot be started.
fn not_started(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::new(
            "no-tool",
            "iperf3 is not installed",
            "install it (Debian, Ubuntu: `apt install iperf3`), or leave engine.traffic at \"builtin\"",
        );
    }
    Error::new("no-tool", format!("iperf3 cannot be started: {error}"), "try `iperf3 --version`")
}
