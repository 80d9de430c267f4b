//! What this machine's kernel has.

use crate::error::Error;
use std::collections::BTreeSet;

/// Congestion controls that the kernel has, in this network namespace.
pub fn algorithms() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Whether this machine lets us make namespaces, and has the tools for it.
///
/// # Errors
/// It does not; the hint names the setting or the package.
pub fn namespaces() -> Result<(), Error> {
    unimplemented!()
}

/// Congestion controls that a socket in a namespace of ours can be given.
pub fn usable_algorithms() -> Vec<String> {
    unimplemented!()
}

/// Queue disciplines that the kernel takes.
pub fn qdiscs() -> BTreeSet<String> {
    unimplemented!()
}

/// Whether we may start processes under SCHED_FIFO.
pub fn is_realtime_allowed() -> bool {
    unimplemented!()
}

/// Whether a program is in the search path.
pub fn has_tool(_name: &str) -> bool {
    unimplemented!()
}
