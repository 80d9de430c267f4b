//! Hosts that send and receive, as processes in separate namespaces, over a pair of interfaces.

mod faults;
mod plans;
mod rig;
mod simulated;
mod transfers;
