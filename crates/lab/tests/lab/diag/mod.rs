//! Kernel statistics of connections and queues, compared with ss, tc and getsockopt.

mod live;
mod namespace;
mod qdiscs;
mod sockets;
