//! Kernel statistics of connections and queues, compared with ss, tc and getsockopt.

mod live;
mod namespace;
mod qdiscs;
mod sockets;
#[path = "../network_support/uml.rs"]
mod uml;

use namespace::cannot_run;
