//! Kernel state of connections and queues.
//!
//! ```text
//!  connections of one IP version     Sampler        one inet_diag dump (sock_diag(7))
//!  connections, with addresses       Survey         one dump for IPv4 and one for IPv6
//!  connections that end              Closed         the kernel's reports of destroyed sockets
//!  one connection                    tcp_info       getsockopt(TCP_INFO) (tcp(7))
//!  queue disciplines                 watch_qdiscs   one RTM_GETQDISC dump (rtnetlink(7))
//! ```

mod bytes;
mod cc_info;
mod closed;
mod netlink;
mod qdiscs;
mod sampler;
mod survey;
mod sys;
mod tcp_info;
#[cfg(test)]
mod tests;
mod watch;

pub use cc_info::{CcInfo, cc_info};
pub use closed::Closed;
pub use sampler::{Sampler, Socket};
pub use survey::{Connection as Surveyed, Survey};
pub use tcp_info::{TcpInfo, tcp_info};
pub use watch::watch_qdiscs;

use crate::error::Error;

/// Parses arbitrary bytes as a kernel datagram and as parts of one, for fuzzing.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut parse = |body: &[u8]| {
        let _ = (sampler::Socket::parse(body), survey::Connection::parse(body), qdiscs::QdiscMessage::parse(body));
        Ok(())
    };
    let _ = netlink::read_datagram(bytes, FUZZED_SEQUENCE, &mut netlink::Consistency::Whole, &mut parse);
    let _ = (parse(bytes), tcp_info::TcpInfo::parse(bytes), netlink::attributes(bytes).count());
}

/// Sequence number of the answers in a fuzzed datagram; others are skipped.
const FUZZED_SEQUENCE: u32 = 1;

/// Names of the values that congestion controls export.
pub const STATE_KEYS: &[&str] = cc_info::KEYS;

/// Returns the static string in [`STATE_KEYS`] that equals `name`.
pub fn state_key(name: &str) -> Option<&'static str> {
    STATE_KEYS.iter().find(|key| **key == name).copied()
}

/// Returns the numbers of packets that a queue discipline has sent and dropped since its creation.
///
/// # Errors
/// `no-qdisc`, `no-qdisc-counters`, `kernel-answer`.
pub(crate) fn qdisc_counts(interface: &str, handle: &str) -> Result<(u64, u64), Error> {
    let count = qdiscs::Counters::open(&[(interface.to_owned(), handle.to_owned())])?.count(0);
    Ok((count.sent_packets, count.dropped_packets))
}
