//! Sockets of connections.

pub(super) mod algorithm;
pub(super) mod connection;
pub(super) mod limits;
pub(super) mod ports;
pub(super) mod transfer;
