//! Sockets of connections: their algorithms and limits, what is written and acknowledged, and which connection has
//! which port.

pub(super) mod algorithm;
pub(super) mod connection;
pub(super) mod limits;
pub(super) mod ports;
pub(super) mod transfer;
