//! What the kernel tells about connections and queues, checked against what ss, tc and getsockopt say.

mod live;
mod namespace;
mod qdiscs;
mod sockets;
#[path = "../network_support/uml.rs"]
mod uml;

use namespace::cannot_run;
