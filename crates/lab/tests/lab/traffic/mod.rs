//! Hosts that send and receive, as processes in separate namespaces.

mod faults;
mod plans;
mod rig;
mod simulated;
mod transfers;
