//! Tests of hosts, networks and measurements through the crate's interface.

mod codes_page;
mod diag;
mod host_protocol_page;
mod network;
mod network_netem;
mod network_support;
mod relay;
mod traffic;
