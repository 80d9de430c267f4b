//! Sockets of connections: their algorithms and limits, their written and acknowledged bytes, and their ports.

pub(super) mod algorithm;
pub(super) mod connection;
pub(super) mod limits;
pub(super) mod ports;
pub(super) mod transfer;
